package telemetry

// LinkServed counts a page of a link by how it ended.
func (m *Metrics) LinkServed(outcome string) { m.linkPages.WithLabelValues(outcome).Inc() }
