"""Functions that searches are compared on, and what a front of two goals is worth.

Each of FUNCTIONS is (name, minimum, evaluate): evaluate(ask) asks for its values one after the other by
ask.real(name, low, high, log=False), ask.integer(...) and ask.choice(name, values), and returns its own. Those of
TWO_GOALS have two values, and in place of the minimum the largest hypervolume.
"""
import itertools
import json
import math

HARTMANN_SCALE = (1.0, 1.2, 3.0, 3.2)
HARTMANN_A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
HARTMANN_P = ((0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886), (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
              (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650), (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381))
ACTIVATION = {"tanh": 0.3, "relu": 0, "gelu": 0.1, "sigmoid": 0.5}


class AskAll:
    """Answers with the values of `discrete`, and records what a function asks for: {name: dimension}."""

    def __init__(self, discrete):
        self.discrete, self.asked = discrete, {}

    def real(self, name, low, high, log=False, integer=False):
        self.asked[name] = {"low": low, "high": high, "integer": integer, "log": log}
        return self.discrete.setdefault(name, range(low, high + 1))[0] if integer and high - low < 10 else low

    def integer(self, name, low, high, log=False):
        return self.real(name, low, high, log, integer=True)

    def choice(self, name, values):
        self.asked[name] = {"values": values}
        return self.discrete.setdefault(name, values)[0]


class Answers:
    """Answers with values by their names."""

    def __init__(self, values):
        self.values = values

    def real(self, name, *_, **__):
        return self.values[name]

    integer = choice = real


def dimensions_of(evaluate):
    """What the function asks for, {name: dimension}. "when" of a dimension: choices and small integers on which it depends, and
    their values with which it exists."""
    values, combinations = {}, []
    evaluate(AskAll(values))
    for point in itertools.product(*values.values()):
        chosen = dict(zip(values, point))
        ask = AskAll({name: [value] for name, value in chosen.items()})
        evaluate(ask)
        combinations.append((chosen, ask.asked))
    names, dimensions = [], {}
    for _, asked in combinations:
        place = len(names)
        for name in reversed(asked):  # before what is asked for after it
            if name in dimensions:
                place = names.index(name)
            else:
                names.insert(place, name)
                dimensions[name] = {**asked[name], "when": {}}
    for name, parent in itertools.product(names, values):
        needed = {chosen[parent] for chosen, asked in combinations if name in asked}
        if len(needed) < len(values[parent]):
            dimensions[name]["when"][parent] = sorted(needed)
    return {name: dimensions[name] for name in names}


def cube(ask, dimensions, low, high):
    return [ask.real(f"x{i}", low, high) for i in range(dimensions)]


def branin(ask):
    x, y = ask.real("x", -5, 10), ask.real("y", 0, 15)
    return (y - 5.1 / (4 * math.pi ** 2) * x ** 2 + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann6(ask):
    point = cube(ask, 6, 0, 1)
    return -sum(scale * math.exp(-sum(a * (x - p) ** 2 for a, x, p in zip(row, point, centre)))
                for scale, row, centre in zip(HARTMANN_SCALE, HARTMANN_A, HARTMANN_P))


def rosenbrock(ask):
    point = cube(ask, 4, -5, 10)
    return sum(100 * (y - x ** 2) ** 2 + (1 - x) ** 2 for x, y in zip(point, point[1:]))


def ackley(ask):
    point = cube(ask, 5, -32.768, 32.768)
    squares = sum(x ** 2 for x in point) / len(point)
    cosines = sum(math.cos(2 * math.pi * x) for x in point) / len(point)
    return -20 * math.exp(-0.2 * math.sqrt(squares)) - math.exp(cosines) + 20 + math.e


def mixed(ask):
    lr = ask.real("lr", 1e-5, 1, log=True)
    momentum = ask.real("momentum", 0, 0.99)
    batch = math.log2(ask.choice("batch_size", (16, 32, 64, 128, 256, 512))) - 6
    layers = ask.integer("layers", 1, 8)
    dropout = ask.real("dropout", 0, 0.9)
    activation = ask.choice("activation", tuple(ACTIVATION))
    return ((math.log10(lr / (1 - momentum)) + 1.5 - 0.3 * batch) ** 2 + 0.02 * batch ** 2 + 0.05 * (layers - 5) ** 2 +
            4 * (dropout - 0.05 * layers) ** 2 + ACTIVATION[activation])


def conditional(ask):
    optimizer = ask.choice("optimizer", ("sgd", "adam", "rmsprop"))
    lr = math.log10(ask.real("lr", 1e-5, 1, log=True))
    if optimizer == "sgd":
        value = 0.3 * (lr + 1) ** 2 + 3 * (ask.real("momentum", 0, 0.99) - 0.9) ** 2 + 0.05
    elif optimizer == "adam":
        value = 0.3 * (lr + 3) ** 2 + 0.2 * (math.log10(ask.real("beta", 1e-4, 0.1, log=True)) + 3) ** 2
    else:
        value = 0.3 * (lr + 3) ** 2 + 0.3
    layers = ask.integer("layers", 1, 4)
    widths = [ask.integer(f"width{i}", 8, 512, log=True) for i in range(layers)]
    return value + 0.1 * (layers - 3) ** 2 + sum(0.1 * (math.log2(width) - (7 - i)) ** 2 for i, width in enumerate(widths))


FUNCTIONS = (
    ("Branin", 0.39788735772973816, branin),
    ("Hartmann 6", -3.322368011391339, hartmann6),
    ("Rosenbrock 4", 0, rosenbrock),
    ("Ackley 5", 0, ackley),
    ("mixed", 0, mixed),
    ("conditional", 0, conditional),
)


def hypervolume(values, corner):
    """The area below `corner` that is not better than all of `values`, pairs of numbers; less is better."""
    area, low = 0, corner[1]
    for x, y in sorted(values):
        if x < corner[0] and y < low:
            area += (corner[0] - x) * (low - y)
            low = y
    return area


class Zdt:
    corner = (1.1, 11)  # g is at most 10

    def __init__(self, h):
        self.h = h
        steps = 100_000
        self.largest = hypervolume([(f / steps, h(f / steps, f / steps)) for f in range(steps + 1)], self.corner)

    def __call__(self, ask):
        first, *others = cube(ask, 30, 0, 1)
        g = 1 + 9 * sum(others) / len(others)
        return first, g * self.h(first, first / g)


class Table:
    """Measured values of all points of a grid: {"name", "sizes": [of each dimension], "values": [[…, …], …], "corner"}, the last
    dimension fastest."""

    def __init__(self, path):
        self.__dict__.update(json.loads(path.read_text()))
        self.largest = hypervolume(self.values, self.corner)

    def __call__(self, ask):
        place = 0
        for dimension, size in enumerate(self.sizes):
            place = place * size + ask.integer(f"x{dimension}", 0, size - 1)
        return tuple(self.values[place])


TWO_GOALS = (
    ("ZDT 1", Zdt(lambda f, ratio: 1 - math.sqrt(ratio))),
    ("ZDT 2", Zdt(lambda f, ratio: 1 - ratio ** 2)),
    ("ZDT 3", Zdt(lambda f, ratio: 1 - math.sqrt(ratio) - ratio * math.sin(10 * math.pi * f))),
)
