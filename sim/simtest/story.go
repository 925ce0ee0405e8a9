package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millwright-go/millwright/codes"
)

// maxStory is how many lines a story has at most.
const maxStory = 60

// story chooses the lines that explain a violation.
type story struct {
	lines    []line
	subjects []string // the machines and VMs that the violation names, by name and ID
	first    int      // the line that names one of them first
	last     []int    // the lines of the last call about each of these machines
	guilty   int      // the line of the last call about them, or of all calls; -1: no such call
	ranks    []int    // of the lines
}

// newStory finds what a violation is about. It looks for names in its text, because that of a user's
// property is nothing but text.
func newStory(lines []line, rule, what string) *story {
	s := &story{lines: lines, guilty: -1}
	for _, also := range callings(lines) {
		if slices.ContainsFunc(also, func(word string) bool { return mentions(what, word) }) {
			s.subjects = append(s.subjects, also...)
		}
	}
	slices.Sort(s.subjects)
	s.findCalls(rule)
	s.ranks = make([]int, len(lines))
	for i := range lines {
		s.ranks[i] = s.rank(i)
	}
	return s
}

// callings returns, for each machine that the driver was called about, its name and the IDs of its VMs.
func callings(lines []line) map[string][]string {
	words := map[string][]string{}
	for i := range lines {
		c := lines[i].call
		if c == nil {
			continue
		}
		name, id := c.about()
		if name == "" {
			continue
		}
		for _, word := range []string{name, id, c.id} {
			if word != "" && !slices.Contains(words[name], word) {
				words[name] = append(words[name], word)
			}
		}
	}
	return words
}

// findCalls finds the last calls about the subjects, and the one to blame.
func (s *story) findCalls(rule string) {
	last, all, blamed := map[string]int{}, -1, -1
	for i := range s.lines {
		c := s.lines[i].call
		now := c != nil && c.over == s.lines[len(s.lines)-1].at
		if c == nil || !c.answered && !now {
			continue // the manager died in it, before what is violated
		}
		all = i
		about := s.isAbout(c)
		if about {
			name, _ := c.about()
			s.guilty, last[name] = i, i
		}
		if breaks(c, rule) && (about || now && c.machine == nil) {
			blamed = i
		}
	}
	switch {
	case blamed >= 0:
		s.guilty = blamed
	case s.guilty < 0:
		s.guilty = all
	}
	s.last = slices.Sorted(maps.Values(last))
	s.first = max(0, slices.IndexFunc(s.lines, func(l line) bool { return s.named(l.text) }))
}

// breaks reports whether a rule is about the answers to such calls. What is left in the end was left by
// a deletion.
func breaks(c *call, rule string) bool {
	return rule == ruleOf(c.method) || rule == ruleLeft && c.method == codes.DeleteMachine
}

// named reports whether a text names a subject.
func (s *story) named(text string) bool {
	return slices.ContainsFunc(s.subjects, func(word string) bool { return mentions(text, word) })
}

// mostNamed is how many machines the last calls are told of.
const mostNamed = 5

// lastCalls says, for each machine that the violation names, how its last call ended.
func (s *story) lastCalls() string {
	if s.guilty < 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("> marks the call to blame: the last one about what is violated, or the last of all.\n")
	for _, i := range s.last[max(0, len(s.last)-mostNamed):] {
		fmt.Fprintf(&b, "Last call: %s, at %s.\n", s.lines[i].text, s.lines[i].at.Round(time.Millisecond))
	}
	return b.String()
}

// isAbout reports whether a call is about what the violation names.
func (s *story) isAbout(c *call) bool {
	name, id := c.about()
	return slices.Contains(s.subjects, name) || slices.Contains(s.subjects, id) || slices.Contains(s.subjects, c.id)
}

// rank says how much a line explains: the smaller, the more.
func (s *story) rank(i int) int {
	l := &s.lines[i]
	switch {
	case i == s.guilty || i == len(s.lines)-1:
		return 0
	case l.call != nil && s.isAbout(l.call):
		return 1
	case s.named(l.text) && strings.Count(l.text, ": ") > 1: // and says why
		return 2
	case s.named(l.text), i > s.first && (strings.HasPrefix(l.text, "step: ") || !strings.Contains(l.text, ": ")): // what users do, and faults
		return 3
	}
	return 4
}

// chosen returns which lines are told, at most limit of them: those that explain most, and of these the
// last ones.
func (s *story) chosen(limit int) []bool {
	order := make([]int, len(s.lines))
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	slices.SortStableFunc(order, func(a, b int) int { return s.ranks[a] - s.ranks[b] })
	told, n, gaps := make([]bool, len(s.lines)), 0, 1 // one gap: nothing is told yet
	for _, i := range order {
		if len(s.subjects) > 0 && s.ranks[i] > 3 {
			break
		}
		n, gaps = n+1, gaps+gapsBy(told, i)
		if n+gaps > limit {
			break
		}
		told[i] = true
	}
	return told
}

// gapsBy is by how much the number of gaps grows if line i is told too.
func gapsBy(told []bool, i int) int {
	before := i > 0 && !told[i-1]
	after := i < len(told)-1 && !told[i+1]
	n := 0
	if before {
		n++
	}
	if after {
		n++
	}
	return n - 1
}

// String returns the story in at most limit lines. Zero: all lines.
func (s *story) text(limit int) string {
	var b strings.Builder
	told := make([]bool, len(s.lines))
	for i := range told {
		told[i] = limit == 0
	}
	if limit > 0 {
		told = s.chosen(limit)
	}
	skipped := 0
	for i, l := range s.lines {
		if !told[i] {
			skipped++
			continue
		}
		skip(&b, skipped)
		skipped = 0
		mark := "  "
		if i == s.guilty {
			mark = "> "
		}
		text, _, _ := strings.Cut(l.text, "\n") // a stack is told once
		fmt.Fprintf(&b, "%s%12s  %s\n", mark, l.at.Round(time.Millisecond), text)
	}
	skip(&b, skipped)
	return b.String()
}

func skip(b *strings.Builder, n int) {
	switch {
	case n == 1:
		fmt.Fprintf(b, "  %12s  … 1 line of others\n", "")
	case n > 1:
		fmt.Fprintf(b, "  %12s  … %d lines of others\n", "", n)
	}
}

// mentions reports whether a text has a name in it, and not only as part of a longer one.
func mentions(text, name string) bool {
	if name == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(name):])
		if !inName(before) && !inName(after) {
			return true
		}
		at = i + 1
	}
}

// inName reports whether a character may be one of a name.
func inName(r rune) bool {
	return r == '-' || r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
