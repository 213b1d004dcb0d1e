package graph

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNameBytes bounds names, in bytes: they become part of keys, ids and metrics.
const maxNameBytes = 128

// checkName checks what all names have in common.
func (b *builder) checkName(path, what, name, forbidden string) bool {
	switch {
	case name == "":
		b.addProblem(path, ReasonMissing, "the %s has no name", what)
	case len(name) > maxNameBytes:
		b.addProblem(path, ReasonInvalidName, "the name of the %s has %d bytes; at most %d are allowed", what, len(name), maxNameBytes)
	case !utf8.ValidString(name):
		b.addProblem(path, ReasonInvalidName, "the name of the %s is not UTF-8", what)
	case strings.ContainsFunc(name, unicode.IsControl):
		b.addProblem(path, ReasonInvalidName, "%s name %q contains a control character", what, name)
	case strings.TrimSpace(name) != name:
		b.addProblem(path, ReasonInvalidName, "%s name %q begins or ends with a space", what, name)
	case strings.ContainsAny(name, forbidden):
		b.addProblem(path, ReasonInvalidName, "%s name %q contains %s", what, name, forbiddenText(name, forbidden))
	default:
		return true
	}
	return false
}

// forbiddenText names the forbidden character that was found and says which others are.
func forbiddenText(name, forbidden string) string {
	i := strings.IndexAny(name, forbidden)
	return "'" + name[i:i+1] + "'; names must not contain any of " + strings.Join(strings.Split(forbidden, ""), " ")
}

func (b *builder) checkNodeName(path, name string) bool {
	switch {
	case name == Start || name == End:
		b.addProblem(path, ReasonReservedName, "%q is reserved; every graph has it without declaring it", name)
		return false
	case strings.HasPrefix(name, "__"):
		b.addProblem(path, ReasonReservedName, "node name %q begins with __, which is reserved", name)
		return false
	case name == AllNodes || name == "START" || name == "END":
		b.addProblem(path, ReasonReservedName, "node name %q is reserved", name)
		return false
	}
	return b.checkName(path, "node", name, "|:")
}

func (b *builder) checkChannelName(path, name string) bool {
	if name == Root && len(b.spec.Channels) == 1 {
		return true
	}
	if name == Root {
		b.addProblem(path, ReasonReservedName, "%s makes the whole state one value, so it must be the only channel", Root)
		return false
	}
	for _, prefix := range []string{"__", "branch:", "join:"} {
		if strings.HasPrefix(name, prefix) {
			b.addProblem(path, ReasonReservedName, "channel name %q begins with %s, which is reserved", name, prefix)
			return false
		}
	}
	return b.checkName(path, "channel", name, "")
}

// nodeNames lists the declared nodes.
func (b *builder) nodeNames() []string {
	names := make([]string, 0, len(b.graph.nodes))
	for _, n := range b.graph.Nodes {
		if n.Spec != nil {
			names = append(names, n.Name)
		}
	}
	return names
}

// nodeNamesAnd lists the declared nodes and a name that every graph has.
func (b *builder) nodeNamesAnd(name string) func() []string {
	return func() []string { return append(b.nodeNames(), name) }
}

// keyNames lists the state keys.
func (b *builder) keyNames() []string {
	names := make([]string, 0, len(b.graph.StateKeys))
	for _, i := range b.graph.StateKeys {
		names = append(names, b.graph.Channels[i].Name)
	}
	return names
}

// resolveKeys resolves a list of state keys; an empty list is all of them.
func (b *builder) resolveKeys(path string, names []string) []int {
	if len(names) == 0 {
		return b.graph.StateKeys
	}
	positions := make([]int, 0, len(names))
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		at, ok := b.graph.channels[name]
		switch {
		case !ok || !b.graph.Channels[at].IsStateKey:
			b.addUnknown(indexPath(path, i), ReasonUnknownChannel, "channel", name, b.keyNames)
		case seen[name]:
			b.addProblem(indexPath(path, i), ReasonDuplicateName, "channel %q is listed twice", name)
		default:
			positions = append(positions, at)
		}
		seen[name] = true
	}
	return positions
}
