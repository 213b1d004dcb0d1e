package checkpoint

import "slices"

// GraphCondition says which versions of a graph there must be for a change of it. The zero
// value permits any.
type GraphCondition struct {
	isSet    bool
	versions []string // sorted
}

// ExpectVersions returns the condition that a graph has these versions and no others.
func ExpectVersions(versions ...string) GraphCondition {
	return GraphCondition{isSet: true, versions: slices.Sorted(slices.Values(versions))}
}

// IsSet reports whether there is a condition.
func (c GraphCondition) IsSet() bool { return c.isSet }

// CheckVersions returns ErrVersionsChanged when the versions of the graph are others.
func (c GraphCondition) CheckVersions(versions []string) error {
	if c.isSet && !slices.Equal(c.versions, slices.Sorted(slices.Values(versions))) {
		return ErrVersionsChanged
	}
	return nil
}
