package safety

import (
	"slices"
	"strings"
	"time"
)

// Slot is a place in the budget of replacements, taken for one machine.
type Slot struct {
	Machine string
	At      time.Time // when it was taken, whole seconds
}

// slotsLimit is how many slots are read: more were never taken.
const slotsLimit = 10_000

// ParseSlots reads the slots that an annotation holds: "name~time", separated
// by commas, the times as RFC 3339 has them. What can't be read is left out: a
// slot that nobody understands must not block a fleet for ever. Of a machine
// named twice the last one counts.
func ParseSlots(text string) []Slot {
	if text == "" {
		return nil
	}
	var slots []Slot
	for entry := range strings.SplitSeq(text, ",") {
		name, at, found := strings.Cut(entry, "~")
		taken, err := time.Parse(time.RFC3339, at)
		taken = taken.UTC().Truncate(time.Second)
		writable := taken.Year() >= 1 && taken.Year() <= 9999 // a zone may lead out of what can be written
		if !found || err != nil || !writable || name == "" || len(slots) >= slotsLimit {
			continue
		}
		slots = append(withoutSlot(slots, name), Slot{name, taken})
	}
	return slots
}

// FormatSlots is what ParseSlots reads. A slot whose machine no store could
// name so (an empty name, or one with a comma or a tilde) is left out.
func FormatSlots(slots []Slot) string {
	entries := make([]string, 0, len(slots))
	for _, s := range slots {
		if s.Machine != "" && !strings.ContainsAny(s.Machine, ",~") {
			entries = append(entries, s.Machine+"~"+s.At.UTC().Format(time.RFC3339))
		}
	}
	return strings.Join(entries, ",")
}

func withoutSlot(slots []Slot, machine string) []Slot {
	return slices.DeleteFunc(slots, func(s Slot) bool { return s.Machine == machine })
}
