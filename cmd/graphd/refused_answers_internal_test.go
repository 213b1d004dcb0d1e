package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// violatedFields lists the fields that an error names.
func violatedFields(err error) (fields []string) {
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		}
	}
	return fields
}

// An answer that does not fit its schema is refused with each wrong part of it, and is no vote:
// the question stays as it was, and the claim with its holder.
func TestAWrongAnswerIsNoVote(t *testing.T) {
	s := startPeopleServer(t)
	s.putGraph(t, staffGraph)
	for _, method := range []string{"Resume", "ResumeRun"} {
		t.Run(method, func(t *testing.T) {
			s.start(t, "pay", method, `{"order": 7}`)
			s.claim(t, "ben", method)
			before := s.question(t, method)
			require.Equal(t, "ben", before.GetClaimedBy())

			err := s.answer(t, method, "ben", method, `{"decision": "maybe", "amount": 0}`)
			require.Equal(t, "RESPONSE_SCHEMA_MISMATCH", reasonOfRefusal(err), "%v", err)
			require.Equal(t, before.GetInterruptId(), metadataOf(err)["interruptId"])
			require.ElementsMatch(t, []string{"single.value/decision", "single.value/amount"}, violatedFields(err))
			s.requireUnchanged(t, before)

			require.NoError(t, s.answer(t, method, "ben", method, `{"decision": "pay", "amount": 1}`))
			require.Len(t, s.question(t, method).GetVotes(), 1)
		})
	}
}

// requireUnchanged checks that a question is what it was, to the last vote and entry.
func (s *peopleServer) requireUnchanged(t *testing.T, before *graphdv1.Interrupt) {
	t.Helper()
	now := s.onlyQuestion(t, before.GetThreadId(), "")
	require.True(t, proto.Equal(before, now), "%v\nis now\n%v", before, now)
}

const twoOrdersGraph = `graph: two-orders
channels: {first: {}, second: {}}
nodes:
  one: {ask: {message: "'Pay order 1?'", update: {first: answer}}}
  two: {ask: {message: "'Pay order 2?'", update: {second: answer}}}
edges: [START -> one -> two -> END]
`

// An answer to what was shown before is not taken for the question that is open now.
func TestAnAnswerToAnotherTextIsRefused(t *testing.T) {
	s := startPeopleServer(t)
	s.putGraph(t, twoOrdersGraph)
	for _, method := range []string{"Resume", "ResumeRun"} {
		t.Run(method, func(t *testing.T) {
			s.start(t, "two-orders", method, `{}`)
			answer := func(q *graphdv1.Interrupt, isNamed bool, seen string) error {
				response := &graphdv1.InterruptResponse{Outcome: &graphdv1.InterruptResponse_Value{Value: jsonPayload(`"yes"`)}, Seen: seen}
				spec := &graphdv1.ResumeSpec{ThreadId: method, Single: response}
				if isNamed {
					response.InterruptId = q.GetInterruptId()
					spec.Single, spec.Responses = nil, []*graphdv1.InterruptResponse{response}
				}
				return s.resume(t, method, "ana", spec)
			}
			first := s.onlyQuestion(t, method, "")
			require.NoError(t, answer(first, false, first.GetSeen()))
			second := s.waitForQuestion(t, method, "two")
			for _, isNamed := range []bool{false, true} {
				err := answer(second, isNamed, first.GetSeen())
				require.Equal(t, "QUESTION_CHANGED", reasonOfRefusal(err), "%v", err)
				require.Equal(t, second.GetInterruptId(), metadataOf(err)["interruptId"])
				require.Equal(t, second.GetSeen(), metadataOf(err)["seen"])
				s.requireUnchanged(t, second)
			}
			require.NoError(t, answer(second, true, second.GetSeen()))
		})
	}
}

// waitForQuestion waits until a node asks, and returns its question.
func (s *peopleServer) waitForQuestion(t *testing.T, thread, node string) *graphdv1.Interrupt {
	t.Helper()
	_, err := graphdv1.NewGraphServiceClient(s.conn).WaitRun(s.as(t, "eva"), &graphdv1.WaitRunRequest{ThreadId: thread})
	require.NoError(t, err)
	q := s.onlyQuestion(t, thread, "")
	require.Equal(t, node, q.GetNode())
	return q
}
