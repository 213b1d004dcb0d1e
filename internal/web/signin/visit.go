package signin

import (
	"crypto/rand"
	"net"
	"net/http"

	"go.uber.org/zap"
)

// visit is one request.
type visit struct {
	*Handler

	w   http.ResponseWriter
	r   *http.Request
	id  string
	log *zap.Logger
}

func newVisit(h *Handler, w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{Handler: h, w: w, r: r, id: rand.Text()}
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		remote = r.RemoteAddr
	}
	v.log = h.opts.Log.With(zap.String("request_id", v.id), zap.String("peer.address", remote))
	return v
}
