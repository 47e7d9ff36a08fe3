"""SMAC3's Gaussian process (BlackBoxFacade) on the functions of search_functions.py, for search_quality.py."""
import tempfile

import ConfigSpace
import smac

import search_functions


def parameter_of(name, dimension):
    if "values" in dimension:
        return ConfigSpace.Categorical(name, dimension["values"])
    kind = ConfigSpace.Integer if dimension["integer"] else ConfigSpace.Float
    return kind(name, (dimension["low"], dimension["high"]), log=dimension["log"])


def space_of(evaluate, seed):
    dimensions = search_functions.dimensions_of(evaluate)
    parameters = {name: parameter_of(name, dimension) for name, dimension in dimensions.items()}
    space = ConfigSpace.ConfigurationSpace(seed=seed)
    space.add(list(parameters.values()))
    for name, dimension in dimensions.items():
        for parent, values in dimension["when"].items():
            space.add(ConfigSpace.InCondition(parameters[name], parameters[parent], values))
    return space


def best_of(evaluate, trials, seed):
    """The least value of as many trials."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = smac.Scenario(space_of(evaluate, seed), deterministic=True, n_trials=trials, seed=seed, output_directory=folder)
        search = smac.BlackBoxFacade(scenario, lambda configuration, seed=0: evaluate(search_functions.Answers(configuration)),
                                     overwrite=True, logging_level=50)
        return search.runhistory.get_cost(search.optimize())
