package wire

import (
	"crypto/sha256"
	"encoding/hex"

	"google.golang.org/protobuf/proto"
)

// digestMessage returns a digest of the effect of a request, to detect a request id
// that is used again with other content. It leaves out the way of delivery: a
// StartRun repeated as Stream attaches to the same run.
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

// DigestIfRepeatable returns the digest of a request with a request id, else "".
// The error is that of the deterministic encoding.
func DigestIfRepeatable(requestID string, effect proto.Message) (string, error) {
	if requestID == "" {
		return "", nil
	}
	return digestMessage(effect)
}

// DigestForCaller returns the digest of a request whose effect depends on who makes it: the
// vote of one caller is not that of another. "" stays "".
func DigestForCaller(digest, caller string) string {
	if digest == "" || caller == "" {
		return digest
	}
	sum := sha256.Sum256([]byte(digest + "\x00" + caller))
	return hex.EncodeToString(sum[:])
}

// repeatableRequest is a request that a client may send again under the same id.
type repeatableRequest interface {
	proto.Message
	GetRequestId() string
}

// DigestWithoutRequestID is DigestIfRepeatable for a request that contains its id.
// The digest leaves the id out. The errors are those of DigestIfRepeatable.
func DigestWithoutRequestID(req repeatableRequest) (string, error) {
	if req.GetRequestId() == "" {
		return "", nil
	}
	effect := proto.Clone(req).ProtoReflect()
	effect.Clear(effect.Descriptor().Fields().ByName("request_id"))
	return digestMessage(effect.Interface())
}
