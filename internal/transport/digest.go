package transport

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
