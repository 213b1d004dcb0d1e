package payload

import (
	"math/bits"
	"strings"
)

// MessagePieces are pieces of one chat message. A piece is a message whose type ends with "Chunk" and
// whose content is a text, or an object with such a message under "message". All are alike but for
// the text, which is kept once.
type MessagePieces struct {
	before, after string // of each piece, around its text
	texts         []byte // of all pieces
	ends          []int  // of the text of each piece
}

// NewMessagePieces begins with a first piece. It returns nil for a value that is no piece.
func NewMessagePieces(first JSON) *MessagePieces {
	before, after, ok := splitPiece(first)
	if !ok {
		return nil
	}
	p := &MessagePieces{before: before, after: after}
	p.addText(string(first[len(before) : len(first)-len(after)]))
	return p
}

// Append adds a piece. It returns false for one that differs in more than its text.
func (p *MessagePieces) Append(piece JSON) bool {
	text, ok := textBetween(string(piece), p.before, p.after)
	if ok {
		p.addText(text)
	}
	return ok
}

func (p *MessagePieces) addText(text string) {
	p.texts = append(p.texts, text...)
	p.ends = append(p.ends, len(p.texts))
}

// Len returns how many pieces there are.
func (p *MessagePieces) Len() int { return len(p.ends) }

// Join returns one piece with the texts of all pieces from a number on.
func (p *MessagePieces) Join(from int) JSON {
	texts := p.texts
	if from > 0 {
		texts = texts[p.ends[from-1]:]
	}
	return JSON(p.before + string(texts) + p.after)
}

// Size returns the bytes that the pieces hold.
func (p *MessagePieces) Size() int {
	return len(p.before) + len(p.after) + cap(p.texts) + cap(p.ends)*bits.UintSize/8
}

// textBetween returns what stands between two parts of a JSON text if it is the inside of a string:
// the part before ends with its quotation mark, the part after begins with the other one.
func textBetween(whole, before, after string) (text string, ok bool) {
	if len(whole) < len(before)+len(after) || !strings.HasPrefix(whole, before) || !strings.HasSuffix(whole, after) {
		return "", false
	}
	text = whole[len(before) : len(whole)-len(after)]
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return "", false
		case '\\':
			if i++; i == len(text) { // it escapes the mark
				return "", false
			}
		}
	}
	return text, true
}

// splitPiece splits a piece around the text of its content.
func splitPiece(piece JSON) (before, after string, ok bool) {
	s := newScanner(string(piece))
	if s.peekByte() != '{' {
		return "", "", false
	}
	p := pieceScanner{scanner: s}
	if !p.scanMessage(true) || !p.isChunk || p.end == 0 {
		return "", "", false
	}
	return p.text[:p.start], p.text[p.end:], true
}

// pieceScanner finds the text of a message's content.
type pieceScanner struct {
	scanner
	start, end int // of the text, without its quotation marks; 0 = not found
	hasType    bool
	isChunk    bool
}

// scanMessage looks through an object. It reports whether the object has each key that counts at most
// once.
func (p *pieceScanner) scanMessage(isOuter bool) bool {
	if !p.openContainer() {
		return p.problem == "" && !p.isTooDeep
	}
	for {
		key, ok := p.readKey()
		if !ok {
			return false
		}
		first := p.peekByte()
		at := p.pos
		switch {
		case key == `"message"` && isOuter && first == '{':
			if p.end != 0 || p.hasType || !p.scanMessage(false) || !p.isChunk || p.end == 0 {
				return false
			}
		case !p.skipValue():
			return false
		case key == `"content"` && first == '"':
			if p.end != 0 {
				return false
			}
			p.start, p.end = at+1, p.pos-1
		case key == `"type"` && first == '"':
			if p.hasType {
				return false
			}
			p.hasType, p.isChunk = true, strings.HasSuffix(p.text[at:p.pos], `Chunk"`)
		}
		if more, ok := p.nextElement('}'); !ok || !more {
			return ok
		}
	}
}
