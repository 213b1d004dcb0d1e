package graph

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNameBytes bounds names, in bytes: they become part of keys, ids and metrics.
const maxNameBytes = 128

// checkName checks the rules of all names.
func (p *problemList) checkName(path, what, name, forbidden string) bool {
	switch {
	case name == "":
		p.addProblem(path, ReasonMissing, "the %s has no name", what)
	case len(name) > maxNameBytes:
		p.addProblem(path, ReasonInvalidName, "the name of the %s has %d bytes; at most %d are allowed", what, len(name), maxNameBytes)
	case !utf8.ValidString(name):
		p.addProblem(path, ReasonInvalidName, "the name of the %s is not UTF-8", what)
	case strings.ContainsFunc(name, unicode.IsControl):
		p.addProblem(path, ReasonInvalidName, "%s name %q contains a control character", what, name)
	case strings.TrimSpace(name) != name:
		p.addProblem(path, ReasonInvalidName, "%s name %q begins or ends with a space", what, name)
	case strings.ContainsAny(name, forbidden):
		p.addProblem(path, ReasonInvalidName, "%s name %q contains %s", what, name, forbiddenText(name, forbidden))
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

func (p *problemList) checkNodeName(path, name string) bool {
	switch {
	case name == Start || name == End:
		p.addProblem(path, ReasonReservedName, "%q is reserved; every graph has it without declaring it", name)
		return false
	case strings.HasPrefix(name, "__"):
		p.addProblem(path, ReasonReservedName, "node name %q begins with __, which is reserved", name)
		return false
	case name == AllNodes || name == "START" || name == "END":
		p.addProblem(path, ReasonReservedName, "node name %q is reserved", name)
		return false
	}
	return p.checkName(path, "node", name, "|:")
}

func (p *problemList) checkChannelName(path, name string, isOnly bool) bool {
	if name == Root && isOnly {
		return true
	}
	if name == Root {
		p.addProblem(path, ReasonReservedName, "%s makes the whole state one value, so it must be the only channel", Root)
		return false
	}
	for _, prefix := range []string{"__", "branch:", "join:"} {
		if strings.HasPrefix(name, prefix) {
			p.addProblem(path, ReasonReservedName, "channel name %q begins with %s, which is reserved", name, prefix)
			return false
		}
	}
	return p.checkName(path, "channel", name, "")
}
