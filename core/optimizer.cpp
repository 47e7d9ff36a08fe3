#include "core/optimizer.h"
