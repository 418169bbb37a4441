// Every built-in simulator: X(its name, its type's, its constants'). A new one adds its header and its line here, and
// nothing else.
#ifndef SHOAL_SIM_SIM_LIST_H
#define SHOAL_SIM_SIM_LIST_H

#include "sim/acrobot.h"
#include "sim/bipedal_walker.h"
#include "sim/bipedal_walker_hardcore.h"
#include "sim/cartpole.h"
#include "sim/lunar_lander.h"
#include "sim/lunar_lander_continuous.h"
#include "sim/mountain_car.h"
#include "sim/mountain_car_continuous.h"
#include "sim/parking.h"
#include "sim/pendulum.h"
#include "sim/position_only_cartpole.h"

#define SIM_LIST(X)                                                            \
    X(cartpole, Cartpole, CARTPOLE)                                            \
    X(mountain_car, MountainCar, MOUNTAIN_CAR)                                 \
    X(mountain_car_continuous, MountainCarContinuous, MOUNTAIN_CAR_CONTINUOUS) \
    X(acrobot, Acrobot, ACROBOT)                                               \
    X(pendulum, Pendulum, PENDULUM)                                            \
    X(position_only_cartpole, PositionOnlyCartpole, POSITION_ONLY_CARTPOLE)    \
    X(parking, Parking, PARKING)                                               \
    X(lunar_lander, LunarLander, LUNAR_LANDER)                                 \
    X(lunar_lander_continuous, LunarLanderContinuous, LUNAR_LANDER_CONTINUOUS) \
    X(bipedal_walker, BipedalWalker, BIPEDAL_WALKER)                           \
    X(bipedal_walker_hardcore, BipedalWalkerHardcore, BIPEDAL_WALKER_HARDCORE)

#endif
