package web

import (
	"net/http"

	"google.golang.org/grpc/metadata"

	"github.com/graphd-dev/graphd/internal/identity"
)

// CallerParts are the parts of a request that name its caller, besides its token. A part that is
// "" is not looked at. The server decides what they are worth: this package hands them on.
type CallerParts struct {
	// SessionCookie is the name of the cookie with the session.
	SessionCookie string
	// UserHeader and GroupsHeader are the headers in which a trusted proxy names the caller and its
	// groups.
	UserHeader   string
	GroupsHeader string
}

// appendMetadata adds the parts of a request to the metadata of its call. Each is cut beyond its
// bound, and the server refuses it then.
func (p *CallerParts) appendMetadata(to metadata.MD, r *http.Request) {
	if p.SessionCookie != "" {
		room := identity.MaxSessionBytes
		for _, cookie := range r.CookiesNamed(p.SessionCookie) {
			appendCut(to, identity.MetadataSession, cookie.Value, &room)
		}
	}
	room := identity.MaxForwardedBytes
	for key, header := range map[string]string{identity.MetadataForwardedUser: p.UserHeader, identity.MetadataForwardedGroups: p.GroupsHeader} {
		if header == "" {
			continue
		}
		for _, value := range r.Header.Values(header) {
			appendCut(to, key, value, &room)
		}
	}
}

// appendCut appends a value, of which room and one byte more are kept.
func appendCut(to metadata.MD, key, value string, room *int) {
	if *room < 0 {
		return
	}
	value = value[:min(len(value), *room+1)]
	*room -= len(value)
	to.Append(key, value)
}
