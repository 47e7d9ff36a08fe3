"""SMAC3's Gaussian process (BlackBoxFacade) on the functions of search_functions.py, for search_quality.py."""
import itertools
import tempfile

import ConfigSpace
import smac


class AskAll:
    """Answers with the values of `discrete`, and records what a function asks for: {name: hyperparameter}."""

    def __init__(self, discrete):
        self.discrete, self.asked = discrete, {}

    def real(self, name, low, high, log=False):
        self.asked[name] = ConfigSpace.Float(name, (low, high), log=log)
        return low

    def integer(self, name, low, high, log=False):
        self.asked[name] = ConfigSpace.Integer(name, (low, high), log=log)
        return self.discrete.setdefault(name, range(low, high + 1))[0] if high - low < 10 else low

    def choice(self, name, values):
        self.asked[name] = ConfigSpace.Categorical(name, values)
        return self.discrete.setdefault(name, values)[0]


class AskConfiguration:
    def __init__(self, configuration):
        self.configuration = configuration

    def real(self, name, *_, **__):
        return self.configuration[name]

    integer = choice = real


def space_of(evaluate, seed):
    """What the function asks for, with the values of choices and small integers on which that depends."""
    values = {}
    evaluate(AskAll(values))
    combinations = []
    for point in itertools.product(*values.values()):
        chosen = dict(zip(values, point))
        ask = AskAll({name: [value] for name, value in chosen.items()})
        evaluate(ask)
        combinations.append((chosen, ask.asked))
    parameters = {name: parameter for _, asked in combinations for name, parameter in asked.items()}
    space = ConfigSpace.ConfigurationSpace(seed=seed)
    space.add(list(parameters.values()))
    for name, parent in itertools.product(parameters, values):
        needed = {chosen[parent] for chosen, asked in combinations if name in asked}
        if len(needed) < len(values[parent]):
            space.add(ConfigSpace.InCondition(parameters[name], parameters[parent], sorted(needed)))
    return space


def best_of(evaluate, trials, seed):
    """The least value of as many trials."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = smac.Scenario(space_of(evaluate, seed), deterministic=True, n_trials=trials, seed=seed, output_directory=folder)
        search = smac.BlackBoxFacade(scenario, lambda configuration, seed=0: evaluate(AskConfiguration(configuration)),
                                     overwrite=True, logging_level=50)
        return search.runhistory.get_cost(search.optimize())
