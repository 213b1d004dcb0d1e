package packed

// textTable knows the texts that a record has so far.
type textTable struct {
	slots      [128]uint16 // number of a text plus 1, by its hash
	firstTexts [48]string
	moreTexts  []string
	count      int
}

func hashText(s string) byte {
	n := len(s)
	h := uint(n)*31 + uint(s[n-1])*131 + uint(s[n-2])*17 + uint(s[n/2])*7 + uint(s[0])
	return byte(h^h>>7) & 127
}

// findOrAdd finds a text of the record, or takes it up.
func (t *textTable) findOrAdd(s string) (n int, ok bool) {
	slot := &t.slots[hashText(s)]
	if n := int(*slot) - 1; n >= 0 && t.textAt(n) == s {
		return n, true
	}
	if t.count == maxTexts {
		return 0, false
	}
	if t.count < len(t.firstTexts) {
		t.firstTexts[t.count] = s
	} else {
		t.moreTexts = append(t.moreTexts, s)
	}
	t.count++
	*slot = uint16(t.count)
	return 0, false
}

func (t *textTable) textAt(n int) string {
	if n < len(t.firstTexts) {
		return t.firstTexts[n]
	}
	return t.moreTexts[n-len(t.firstTexts)]
}

// findText looks for a text without taking it up.
func (t *textTable) findText(s string) (n int, ok bool) {
	n = int(t.slots[hashText(s)]) - 1
	return n, n >= 0 && t.textAt(n) == s
}
