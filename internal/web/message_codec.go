package web

import (
	"fmt"
	"mime"
	"net/http"
	"regexp"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// messageCodec is an encoding of messages.
type messageCodec struct {
	unaryType  string // content type of a unary request and its answer
	streamType string
	estimate   func([]byte, protoreflect.MessageDescriptor) int64 // of the memory of a message, at most
	unmarshal  func([]byte, proto.Message) error
	appendTo   func([]byte, proto.Message) ([]byte, error)
}

// streamTypes begins the content types of streams.
const streamTypes = "application/connect+"

// messageCodecs are the encodings that a client may choose.
func messageCodecs() []*messageCodec {
	return []*messageCodec{
		{"application/json", "application/connect+json", estimateJSON, decodeJSON, protojson.MarshalOptions{}.MarshalAppend},
		{"application/proto", "application/connect+proto", estimateProto, decodeProto, proto.MarshalOptions{}.MarshalAppend},
	}
}

func (c *messageCodec) contentType(isStream bool) string {
	if isStream {
		return c.streamType
	}
	return c.unaryType
}

// findCodec returns the codec that a request names, nil = none of them.
func findCodec(r *http.Request, isStream bool) *messageCodec {
	given, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !isUTF8(parameters) {
		return nil
	}
	for _, c := range messageCodecs() {
		if c.contentType(isStream) == given {
			return c
		}
	}
	return nil
}

func isUTF8(parameters map[string]string) bool {
	charset, ok := parameters["charset"]
	return !ok || charset == "utf-8" || charset == "UTF-8"
}

// unknownField finds the name in what protojson says of a field that it does not know.
var unknownField = regexp.MustCompile(`unknown field "([^"]{1,100})"`)

// syntaxPlace finds where protojson met something that it did not expect.
var syntaxPlace = regexp.MustCompile(`\(line (\d+):(\d+)\)`)

func decodeJSON(text []byte, into proto.Message) error {
	err := protojson.Unmarshal(text, into)
	if err == nil {
		return nil
	}
	name := into.ProtoReflect().Descriptor().FullName()
	place := ""
	if m := syntaxPlace.FindStringSubmatch(err.Error()); m != nil {
		place = fmt.Sprintf(", line %s, column %s", m[1], m[2])
	}
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		return newError(codes.InvalidArgument, reasonInvalidField,
			fmt.Sprintf("%s has no field %q%s: want the names of the proto in lowerCamelCase", name, m[1], place), map[string]string{"field": m[1]})
	}
	return newError(codes.InvalidArgument, reasonInvalidField,
		fmt.Sprintf("the request is no %s in JSON%s: want the JSON form of protobuf, https://protobuf.dev/programming-guides/json", name, place), nil)
}

func decodeProto(text []byte, into proto.Message) error {
	if proto.Unmarshal(text, into) == nil {
		return nil
	}
	return newError(codes.InvalidArgument, reasonInvalidField,
		fmt.Sprintf("the message can't be decoded: want a %s in the encoding of protobuf, with texts in UTF-8", into.ProtoReflect().Descriptor().FullName()), nil)
}
