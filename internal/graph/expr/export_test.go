package expr

import (
	"testing"

	"cel.dev/cel-go/cel"
	"github.com/stretchr/testify/require"
)

// NewWith returns New with more in the environment.
func NewWith(options Options, more ...cel.EnvOption) (*Compiler, error) {
	return newCompiler(options, more...)
}

// Unpriced lists the functions of the environment that have no price.
func Unpriced(tb testing.TB) []string {
	tb.Helper()
	c, err := New(Options{})
	require.NoError(tb, err)
	var names []string
	for name := range c.env.Functions() {
		if c.planner.prices[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// UnusedPrices lists the prices of functions that do not exist.
func UnusedPrices(tb testing.TB) []string {
	tb.Helper()
	c, err := New(Options{})
	require.NoError(tb, err)
	var names []string
	for name := range c.planner.prices {
		if _, ok := c.env.Functions()[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// CountCompiled returns how many conditions are kept.
func (c *Conditions) CountCompiled() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.compiled)
}
