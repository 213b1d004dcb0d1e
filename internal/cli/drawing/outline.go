package drawing

import "math"

// Measures of dashes.
const (
	dashLength = 4
	dashGap    = 4
)

// curveSteps is how many straight lines a curve becomes for each 8 pixels.
const curveSteps = 8

// flattenPath makes lines of straight parts of a path, which begins at a place.
func flattenPath(path []segment, origin point) [][]point {
	var lines [][]point
	var line []point
	end := func() {
		if len(line) > 1 {
			lines = append(lines, line)
		}
	}
	for _, s := range path {
		points := make([]point, len(s.points))
		for i, p := range s.points {
			points[i] = point{p.x + origin.x, p.y + origin.y}
		}
		switch {
		case s.command == 'M':
			end()
			line = points
		case s.command == 'Z' && len(line) > 0:
			line = append(line, line[0])
		case len(line) > 0:
			line = appendCurve(line, points)
		}
	}
	end()
	return lines
}

// appendCurve adds a Bézier curve of any degree, from the end of a line on.
func appendCurve(line, controls []point) []point {
	all := append([]point{line[len(line)-1]}, controls...)
	if len(controls) == 1 {
		return append(line, controls[0])
	}
	length := 0.0
	for i := range controls {
		length += math.Hypot(all[i+1].x-all[i].x, all[i+1].y-all[i].y)
	}
	steps := max(4, min(64, int(length/curveSteps)+4))
	for i := 1; i <= steps; i++ {
		line = append(line, findPoint(all, float64(i)/float64(steps)))
	}
	return line
}

// findPoint returns a point of a curve; t is 0 at its start and 1 at its end.
func findPoint(controls []point, t float64) point {
	left := append([]point(nil), controls...)
	for n := len(left) - 1; n > 0; n-- {
		for i := range n {
			left[i] = point{left[i].x + (left[i+1].x-left[i].x)*t, left[i].y + (left[i+1].y-left[i].y)*t}
		}
	}
	return left[0]
}

// dashLines cuts lines into dashes.
func dashLines(lines [][]point) [][]point {
	var dashes [][]point
	for _, line := range lines {
		dashes = append(dashes, dashLine(line)...)
	}
	return dashes
}

func dashLine(line []point) [][]point {
	var dashes [][]point
	dash, left := []point{line[0]}, float64(dashLength) // of the dash, or of the gap when dash is nil
	for i := 1; i < len(line); i++ {
		from, to := line[i-1], line[i]
		length := math.Hypot(to.x-from.x, to.y-from.y)
		for ; length > left; length = math.Hypot(to.x-from.x, to.y-from.y) {
			from = point{from.x + (to.x-from.x)*left/length, from.y + (to.y-from.y)*left/length}
			if dash == nil {
				dash, left = []point{from}, dashLength
				continue
			}
			dashes = append(dashes, append(dash, from))
			dash, left = nil, dashGap
		}
		left -= length
		if dash != nil {
			dash = append(dash, to)
		}
	}
	if len(dash) > 1 {
		dashes = append(dashes, dash)
	}
	return dashes
}

// outlineLine returns polygons that cover a line with round corners and ends.
func outlineLine(line []point, width float64) [][]point {
	var polygons [][]point
	r := width / 2
	for i := range line {
		if i == 0 || i == len(line)-1 || turnsAt(line, i) {
			polygons = append(polygons, makeCircle(line[i], r))
		}
		if i == 0 {
			continue
		}
		from, to := line[i-1], line[i]
		length := math.Hypot(to.x-from.x, to.y-from.y)
		if length == 0 {
			continue
		}
		nx, ny := -(to.y-from.y)/length*r, (to.x-from.x)/length*r
		polygons = append(polygons, []point{{from.x - nx, from.y - ny}, {to.x - nx, to.y - ny}, {to.x + nx, to.y + ny}, {from.x + nx, from.y + ny}})
	}
	return polygons
}

// turnsAt reports whether a line has a corner at a point.
func turnsAt(line []point, i int) bool {
	const corner = 0.4 // radians
	a, b, c := line[i-1], line[i], line[i+1]
	turn := math.Abs(math.Atan2(c.y-b.y, c.x-b.x) - math.Atan2(b.y-a.y, b.x-a.x))
	return min(turn, 2*math.Pi-turn) > corner
}

// makeCircle returns a polygon that is nearly a circle.
func makeCircle(center point, r float64) []point {
	const corners = 16
	points := make([]point, corners)
	for i := range points {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		points[i] = point{center.x + r*cos, center.y + r*sin}
	}
	return points
}

// makeRoundRectangle returns a rectangle with round corners that is grown by a width on each side.
func makeRoundRectangle(p Place, radius, grown float64) []point {
	const steps = 12
	w, h := p.Width/2+grown, p.Height/2+grown
	r := max(0, min(radius+grown, w, h))
	var points []point
	for corner, sign := range [4]point{{1, 1}, {-1, 1}, {-1, -1}, {1, -1}} {
		for i := range steps + 1 {
			sin, cos := math.Sincos(math.Pi / 2 * (float64(corner) + float64(i)/steps))
			points = append(points, point{p.X + sign.x*(w-r) + r*cos, p.Y + sign.y*(h-r) + r*sin})
		}
	}
	return points
}
