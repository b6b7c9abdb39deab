"""What a test is for lit: a file with RUN lines, of which the processor's time is kept beside the clock's."""
import resource

import lit.formats
import lit.Test


class Timed(lit.formats.ShTest):
    """A test whose result has the seconds that its processes took of processors, as far as they were waited for."""

    def execute(self, test, lit_config):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = super().execute(test, lit_config)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if not isinstance(result, lit.Test.Result):
            result = lit.Test.Result(*result)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        result.addMetric("cpu", lit.Test.RealMetricValue(cpu))
        return result
