package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"sync/atomic"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// pattern is a regular expression with its cost.
type pattern struct {
	*regexp.Regexp

	size int // instructions
}

// patternCompiler compiles the regular expressions of a schema. Later it
// compiles, from any goroutine, the values of format regex.
type patternCompiler struct {
	isLinked   atomic.Bool // the schema is ready: later expressions are values
	size       int         // of all in the schema, so far
	limitError *LimitError // the library returns errors as text only
}

// compileCounted compiles a regular expression of the schema and adds its size to that of
// the others. Afterwards it only compiles. It returns the errors of compilePattern, and
// *LimitError when the regular expressions of the schema are too large together.
func (p *patternCompiler) compileCounted(text string) (jsonschema.Regexp, error) {
	re, err := compilePattern(text)
	if p.isLinked.Load() {
		return re, err
	}
	if err == nil {
		if p.size += re.size; p.size > maxPatternsSize {
			err = &LimitError{
				Max: maxPatternsSize, Got: p.size,
				Problem: "the regular expressions of the schema are too many or too large: " + strconv.Itoa(p.size) + " instructions",
			}
		}
	}
	if limit, ok := errors.AsType[*LimitError](err); ok && p.limitError == nil {
		p.limitError = limit
	}
	return re, err
}

// compilePattern compiles a regular expression. It returns *LimitError when the text or the
// compiled form is too large, and *syntax.Error when the text is no regular expression. It
// counts instructions first, because a few characters with counts can compile to megabytes.
func compilePattern(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, &LimitError{Max: maxPattern, Got: len(text), Problem: fmt.Sprintf("a regular expression has %d bytes", len(text))}
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	n := countInstructions(tree)
	if n > maxPatternSize {
		return nil, &LimitError{Max: maxPatternSize, Got: n, Problem: "a regular expression repeats too much: " + strconv.Itoa(n) + " instructions"}
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{Regexp: compiled, size: n}, nil
}

// countInstructions returns at least the size of the program of an expression, in
// which counts are not expanded yet.
func countInstructions(tree *syntax.Regexp) int {
	n := 1 + len(tree.Rune)/2
	for _, sub := range tree.Sub {
		n = min(n+countInstructions(sub), maxPatternSize+1)
	}
	if tree.Op == syntax.OpRepeat {
		n = min(n*max(tree.Min, tree.Max, 1), maxPatternSize+1)
	}
	return n
}

// patternSize returns the cost of matching per byte.
func patternSize(re jsonschema.Regexp) int {
	p, ok := re.(*pattern)
	if !ok {
		return 0
	}
	return p.size
}
