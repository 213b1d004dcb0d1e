package codec

import (
	"github.com/graphd-dev/graphd/internal/approval"
	"github.com/graphd-dev/graphd/internal/checkpoint/codec/packed"
)

func writePolicy(w *packed.Writer, p *approval.Policy) {
	if p == nil {
		return
	}
	w.OpenObject(fPolicy)
	w.WriteStrings(fUsers, p.Users)
	w.WriteStrings(fGroups, p.Groups)
	writeInt(w, fApprovals, p.Approvals)
	writeInt(w, fVetoes, p.Vetoes)
	writeString(w, fAgree, p.Agree)
	w.WriteBool(fNotRequester, p.NotRequester)
	writeString(w, fRequester, p.Requester)
	w.CloseObject()
}

func readPolicy(rd *packed.Reader) *approval.Policy {
	p := &approval.Policy{}
	rd.ReadObject(func(f packed.Field) {
		switch f {
		case fUsers:
			p.Users = rd.ReadStrings()
		case fGroups:
			p.Groups = rd.ReadStrings()
		case fApprovals:
			p.Approvals = int(rd.ReadInt())
		case fVetoes:
			p.Vetoes = int(rd.ReadInt())
		case fAgree:
			p.Agree = rd.ReadString()
		case fNotRequester:
			p.NotRequester = rd.ReadBool()
		case fRequester:
			p.Requester = rd.ReadString()
		default:
			rd.SkipValue()
		}
	})
	return p
}

func writeVotes(w *packed.Writer, votes []approval.Vote) {
	if len(votes) == 0 {
		return
	}
	w.OpenArray(fVotes)
	for i := range votes {
		v := &votes[i]
		w.OpenElement()
		writeString(w, fVoter, v.Voter)
		writeString(w, fHow, v.How)
		writeString(w, fMethod, v.Method)
		w.WriteTime(fTime, v.Time)
		w.WriteBool(fAgrees, v.Agrees)
		w.WriteJSON(fValue, v.Value)
		writeString(w, fNote, v.Note)
		writeString(w, fRequest, v.Request)
		w.CloseObject()
	}
	w.CloseArray()
}

func readVotes(rd *packed.Reader) []approval.Vote {
	var votes []approval.Vote
	rd.ReadArray(func() {
		var v approval.Vote
		rd.ReadObject(func(f packed.Field) { readVoteField(rd, &v, f) })
		votes = append(votes, v)
	})
	return votes
}

func readVoteField(rd *packed.Reader, v *approval.Vote, f packed.Field) {
	switch f {
	case fVoter:
		v.Voter = rd.ReadString()
	case fHow:
		v.How = rd.ReadString()
	case fMethod:
		v.Method = rd.ReadString()
	case fTime:
		v.Time = rd.ReadTime()
	case fAgrees:
		v.Agrees = rd.ReadBool()
	case fValue:
		v.Value = rd.ReadJSON()
	case fNote:
		v.Note = rd.ReadString()
	case fRequest:
		v.Request = rd.ReadString()
	default:
		rd.SkipValue()
	}
}
