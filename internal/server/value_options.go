package server

import (
	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/graph/expr"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// ValueOptions bound the cost of expressions and the size of values.
type ValueOptions struct {
	MaxSteps  int64
	MaxBytes  int64
	MaxValue  int64
	MaxState  int64
	MaxWrites int64
	MaxSends  int
}

// RegisterFlags registers these limits.
func (o *ValueOptions) RegisterFlags(f *pflag.FlagSet) {
	f.Int64Var(&o.MaxSteps, "max-expression-steps", 10_000_000,
		"how much work an expression may do: about one step of 100 ns per call, per part of a loop, and per 32 bytes of text")
	f.Int64Var(&o.MaxBytes, "max-expression-bytes", 64<<20, "how much memory an expression may use, all its intermediate values together")
	f.Int64Var(&o.MaxValue, "max-value-bytes", 4<<20,
		"how long a value of the state, of an update or of a Send may be, and the result of an expression, as JSON")
	f.Int64Var(&o.MaxState, "max-state-bytes", 8<<20, "how long all values of a state may be together")
	f.Int64Var(&o.MaxWrites, "max-write-bytes", 8<<20, "how much the tasks of one superstep may write together")
	f.IntVar(&o.MaxSends, "max-sends", 4096, "how many Sends one superstep may make")
}

// validateOptions refuses limits that are too small to work with.
func (o *ValueOptions) validateOptions() error {
	for _, limit := range []struct {
		flag        string
		value, most int64
	}{
		{"max-expression-steps", o.MaxSteps, 1 << 40},
		{"max-expression-bytes", o.MaxBytes, 1 << 40},
		{"max-value-bytes", o.MaxValue, 1 << 30},
		{"max-state-bytes", o.MaxState, 1 << 32},
		{"max-write-bytes", o.MaxWrites, 1 << 32},
		{"max-sends", int64(o.MaxSends), 1 << 20},
	} {
		if limit.value < 1 || limit.value > limit.most {
			return exit.Usagef("--%s is %d", limit.flag, limit.value).WithHint("want a number from 1 to %d", limit.most)
		}
	}
	return nil
}

// stateLimits returns the limits of the state of graphs.
func (o *ValueOptions) stateLimits() pregel.Limits {
	return pregel.Limits{MaxValueBytes: o.MaxValue, MaxStateBytes: o.MaxState, MaxWriteBytes: o.MaxWrites, MaxSends: o.MaxSends}
}

// expressionOptions returns the limits of one evaluation.
func (o *Options) expressionOptions() expr.Options {
	return expr.Options{MaxSteps: o.MaxSteps, MaxBytes: o.MaxBytes, MaxResult: o.MaxValue, MaxDepth: o.MaxDepth}
}
