// Every built-in simulator: X(name, Type, CONSTANT). A new one adds its header and its line here, and nothing else.
#ifndef SHOAL_SIM_SIM_LIST_H
#define SHOAL_SIM_SIM_LIST_H

#include "sim/cartpole.h"

#define SIM_LIST(X) X(cartpole, Cartpole, CARTPOLE)

#endif
