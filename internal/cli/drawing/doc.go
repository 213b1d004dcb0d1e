// Package drawing draws graphs as SVG and PNG. Where nodes and edges are it finds out with the code
// of the page for browsers, so that a graph looks the same in both.
package drawing
