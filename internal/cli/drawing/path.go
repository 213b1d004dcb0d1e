package drawing

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// point is a place in a drawing.
type point struct{ x, y float64 }

// segment is one command of a path with its points; the last one is where it ends.
type segment struct {
	command byte // M, L, Q, C or Z
	points  []point
}

// parsePath reads a path of M, L, Q, C and Z. It ends at what it does not know.
func parsePath(path string) []segment {
	var segments []segment
	for path != "" {
		command := path[0]
		end := strings.IndexAny(path[1:], "MLQCZ") + 1
		if end == 0 {
			end = len(path)
		}
		points := parsePoints(path[1:end])
		if command != 'Z' && len(points) == 0 {
			break
		}
		segments = append(segments, segment{command, points})
		path = path[end:]
	}
	return segments
}

// parsePoints reads points like 1,2 3,4.
func parsePoints(list string) []point {
	var points []point
	for field := range strings.FieldsSeq(list) {
		x, y, _ := strings.Cut(field, ",")
		px, errX := strconv.ParseFloat(x, 64)
		py, errY := strconv.ParseFloat(y, 64)
		if errX != nil || errY != nil {
			return points
		}
		points = append(points, point{px, py})
	}
	return points
}

// Measures of the head of an arrow.
const (
	headLength = 9
	headWidth  = 7.5
)

// makeArrowHead returns the path of a head at the end of a path, "" for one without a direction.
func makeArrowHead(path string) string {
	var points []point
	for _, s := range parsePath(path) {
		points = append(points, s.points...)
	}
	for i := len(points) - 2; i >= 0; i-- {
		tip, before := points[len(points)-1], points[i]
		length := math.Hypot(tip.x-before.x, tip.y-before.y)
		if length < 0.1 {
			continue
		}
		ux, uy := (tip.x-before.x)/length, (tip.y-before.y)/length
		baseX, baseY := tip.x-ux*headLength, tip.y-uy*headLength
		return fmt.Sprintf("M%s,%sL%s,%sL%s,%sZ", formatNumber(tip.x), formatNumber(tip.y),
			formatNumber(baseX-uy*headWidth/2), formatNumber(baseY+ux*headWidth/2),
			formatNumber(baseX+uy*headWidth/2), formatNumber(baseY-ux*headWidth/2))
	}
	return ""
}

// formatNumber formats a coordinate with at most one decimal.
func formatNumber(n float64) string {
	rounded := math.Round(n*10) / 10
	if rounded == 0 {
		return "0" // and never -0
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
