package drain

import (
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
)

// protection is what an annotation of a pod says against its eviction.
type protection struct {
	key     string
	until   time.Time // when it ends by itself; zero: it does not
	unclear string    // a value that says neither; the pod is protected
}

// outlasts reports whether p protects for longer than other, or is the only one.
func (p *protection) outlasts(other *protection) bool {
	return other.key == "" || !other.until.IsZero() && (p.until.IsZero() || p.until.After(other.until))
}

// protection returns what protects a pod for longest. The zero protection: nothing does.
func (d *decider) protection(p *Pod) (longest protection) {
	if len(p.Annotations) == 0 {
		return longest
	}
	consider := func(keys []string, protects func(string) (protection, bool)) {
		for _, key := range keys {
			value, there := p.Annotations[key]
			if !there {
				continue
			}
			if found, yes := protects(strings.TrimSpace(value)); yes && found.outlasts(&longest) {
				longest, longest.key = found, key
			}
		}
	}
	consider(d.p.Keys.DoNotDisrupt, func(value string) (protection, bool) { return d.notDisrupted(value, p.CreatedAt) })
	consider(d.p.Keys.SafeToEvict, notSafe)
	return longest
}

// notDisrupted reads "true", "false", or for how long after its creation a pod is protected.
func (d *decider) notDisrupted(value string, created time.Time) (protection, bool) {
	if yes, err := strconv.ParseBool(value); err == nil {
		return protection{}, yes
	}
	after, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return protection{unclear: quoted(value)}, true
	case created.IsZero() && after > 0: // it ends at a time that is not known
		return protection{}, true
	}
	until := created.Add(after)
	return protection{until: until}, d.now.Before(until)
}

// notSafe reads "true" or "false", which protects.
func notSafe(value string) (protection, bool) {
	yes, err := strconv.ParseBool(value)
	if err != nil {
		return protection{unclear: quoted(value)}, true
	}
	return protection{}, !yes
}

// quoted returns the beginning of a value, for people.
func quoted(value string) string {
	const most = 40
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return strconv.Quote(codes.Printable(value))
}

// protect holds a protected pod back.
func (d *decider) protect(s standing, by *protection) standing {
	s = d.held(s, reasonProtected, by.key)
	if by.unclear != "" && s.reason == reasonProtected {
		s.reason, s.detail = reasonProtectedUnclear, by.unclear
	}
	if s.state == holding {
		s.until = by.until
	}
	return s
}

// heldFor returns for how long a pod is held back at most. Zero: without end, or no longer.
func (d *decider) heldFor(s *standing) time.Duration {
	left := d.timeLeft()
	if !s.until.IsZero() && (left == 0 || s.until.Sub(d.now) < left) {
		left = s.until.Sub(d.now)
	}
	return max(left, 0)
}
