package drawing

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPathsAreRead(t *testing.T) {
	require.Equal(t, []segment{
		{'M', []point{{1, -2.5}}}, {'L', []point{{3, 4}}}, {'Q', []point{{5, 6}, {7, 8}}}, {'C', []point{{1, 1}, {2, 2}, {3, 3}}}, {'Z', nil},
	}, parsePath("M1,-2.5L3,4Q5,6 7,8C1,1 2,2 3,3Z"))
	require.Empty(t, parsePath(""))
	for _, odd := range []string{"M", "x", "Mx,y", "M1", "L1,NaNQ"} {
		require.NotPanics(t, func() {
			flattenPath(parsePath(odd), point{})
			makeArrowHead(odd)
		})
	}
}

func TestArrowsPointAlongTheEnd(t *testing.T) {
	require.Equal(t, "M0,10L-3.8,1L3.8,1Z", makeArrowHead("M0,0L0,10"))
	require.Equal(t, "M10,0L1,3.8L1,-3.8Z", makeArrowHead("M0,-9Q0,0 10,0"))
	require.Equal(t, makeArrowHead("M0,0L0,10"), makeArrowHead("M0,0L0,10L0,10"))
	require.Empty(t, makeArrowHead("M0,0L0,0"))
}

func lengthOf(line []point) float64 {
	length := 0.0
	for i := 1; i < len(line); i++ {
		length += math.Hypot(line[i].x-line[i-1].x, line[i].y-line[i-1].y)
	}
	return length
}

func TestDashesAreAsLongAsTheyShould(t *testing.T) {
	for _, path := range []string{"M0,0L100,0", "M0,0L1,0L2,0L3,0L50,0", "M0,0Q0,60 80,60", "M0,0L3,0"} {
		lines := flattenPath(parsePath(path), point{})
		require.Len(t, lines, 1)
		total := lengthOf(lines[0])
		dashes := dashLines(lines)
		require.Len(t, dashes, int(math.Ceil(total/(dashLength+dashGap))))
		for i, dash := range dashes {
			require.InDelta(t, min(dashLength, total-float64(i)*(dashLength+dashGap)), lengthOf(dash), 0.05)
		}
	}
}

// area is positive for a polygon that goes round like all others.
func area(polygon []point) float64 {
	sum := 0.0
	for i, a := range polygon {
		b := polygon[(i+1)%len(polygon)]
		sum += a.x*b.y - b.x*a.y
	}
	return sum / 2
}

// Polygons that go round in different directions would cancel each other where they overlap.
func TestOutlinesGoRoundInOneDirection(t *testing.T) {
	for _, line := range [][]point{{{0, 0}, {10, 0}, {10, 10}, {0, 10}, {0, 0}}, {{5, 5}, {-7, 2}}} {
		for _, polygon := range outlineLine(line, 2) {
			require.Positive(t, area(polygon))
		}
	}
	require.InDelta(t, 20*10-(4-math.Pi)*9, area(makeRoundRectangle(Place{X: 3, Y: 4, Width: 20, Height: 10}, 3, 0)), 0.2)
	require.InDelta(t, 22*12-(4-math.Pi)*16, area(makeRoundRectangle(Place{Width: 20, Height: 10}, 3, 1)), 0.2)
}
