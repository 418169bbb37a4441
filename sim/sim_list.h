// Every built-in simulator: X(its name, its type's, its constants'). A new one adds its header and its line here, and
// nothing else. Those with more than one discrete action, or with discrete and continuous ones, have a list of their
// own, which kernels/cuda does without: it does not know them yet.
#ifndef SHOAL_SIM_SIM_LIST_H
#define SHOAL_SIM_SIM_LIST_H

#include "sim/acrobot.h"
#include "sim/cartpole.h"
#include "sim/lunar_lander.h"
#include "sim/lunar_lander_continuous.h"
#include "sim/mountain_car.h"
#include "sim/mountain_car_continuous.h"
#include "sim/parking.h"
#include "sim/pendulum.h"
#include "sim/position_only_cartpole.h"

#define SIM_LIST_ONE_ACTION(X)                                                 \
    X(cartpole, Cartpole, CARTPOLE)                                            \
    X(mountain_car, MountainCar, MOUNTAIN_CAR)                                 \
    X(mountain_car_continuous, MountainCarContinuous, MOUNTAIN_CAR_CONTINUOUS) \
    X(acrobot, Acrobot, ACROBOT)                                               \
    X(pendulum, Pendulum, PENDULUM)                                            \
    X(position_only_cartpole, PositionOnlyCartpole, POSITION_ONLY_CARTPOLE)    \
    X(lunar_lander, LunarLander, LUNAR_LANDER)                                 \
    X(lunar_lander_continuous, LunarLanderContinuous, LUNAR_LANDER_CONTINUOUS)

#define SIM_LIST_SEVERAL_ACTIONS(X) X(parking, Parking, PARKING)

#if defined(__CUDACC__) || defined(SIM_WITHOUT_SEVERAL_ACTIONS)
#define SIM_LIST(X) SIM_LIST_ONE_ACTION(X)
#else
#define SIM_LIST(X) SIM_LIST_ONE_ACTION(X) SIM_LIST_SEVERAL_ACTIONS(X)
#endif

#endif
