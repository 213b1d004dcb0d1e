package expr

import (
	"math"
	"regexp/syntax"
)

// The library translates a regular expression into a program whose size grows
// with the product of nested counts, like ((a{99}){99}): the size is computed
// from the syntax tree, before anything is translated.

// regexSize estimates the number of instructions of a pattern; 0 for an invalid pattern,
// which the library reports.
func regexSize(pattern string) int64 {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return treeSize(tree)
}

func treeSize(tree *syntax.Regexp) int64 {
	sum := int64(1 + len(tree.Rune))
	if tree.Op == syntax.OpCharClass {
		sum = 2
	}
	for _, part := range tree.Sub {
		sum = saturatingAdd(sum, treeSize(part))
	}
	if tree.Op == syntax.OpRepeat {
		times := int64(max(tree.Min, tree.Max, 1) + 1)
		if sum > math.MaxInt32/times {
			return math.MaxInt32
		}
		return sum * times
	}
	return sum
}

func saturatingAdd(x, y int64) int64 { return min(x+y, math.MaxInt32) }

func (m *meter) checkRegexSize(size int64) {
	if m != nil && size > MaxRegexSize {
		m.stopEvaluation(limitRegex, MaxRegexSize, size)
	}
}

// chargeRegexCompile charges the translation.
func (m *meter) chargeRegexCompile(size int64) {
	m.chargeSteps(size)
	m.chargeBytes(size, 160)
}

// chargeRegexMatch charges a match: each byte of the text may be looked at by as many
// threads as the program has instructions.
func (m *meter) chargeRegexMatch(size, text int64) {
	m.chargeProduct(text/8+1, size+1)
	m.chargeBytes(size, 64)
}
