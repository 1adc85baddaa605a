"""Training: a run is a folder, and `train(run)` is a generator of what happens in it.

    run_config   everything that decides a run, as frozen dataclasses
    events       what happens: started, step, evaluated, sampled, saved, paused, finished, failed
    run_folder   the files of a run, and how they survive a crash
    loop         the training loop; objectives/ say what is learned

The page, the command line (`python -m explorer.train`) and the tests read the same events.
"""
