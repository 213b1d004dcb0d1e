package wire

import (
	"crypto/sha256"
	"encoding/hex"

	"google.golang.org/protobuf/proto"
)

// digestMessage identifies what a request asks for, so that a request id that comes
// again with other content is found out. It covers what takes effect, not how
// it is delivered: a StartRun repeated as Stream attaches to the same run.
func digestMessage(effect proto.Message) (string, error) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(effect)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write([]byte(effect.ProtoReflect().Descriptor().FullName()))
	h.Write([]byte{0})
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// DigestIfRepeatable digests what a request asks for, but only when it may come again.
func DigestIfRepeatable(requestID string, effect proto.Message) (string, error) {
	if requestID == "" {
		return "", nil
	}
	return digestMessage(effect)
}

// repeatableRequest is a request that a client may send again under the same id.
type repeatableRequest interface {
	proto.Message
	GetRequestId() string
}

// DigestWithoutRequestID is DigestIfRepeatable for a request that has its id inside: the id is no part
// of what is asked for.
func DigestWithoutRequestID(req repeatableRequest) (string, error) {
	if req.GetRequestId() == "" {
		return "", nil
	}
	effect := proto.Clone(req).ProtoReflect()
	effect.Clear(effect.Descriptor().Fields().ByName("request_id"))
	return digestMessage(effect.Interface())
}
