package replacement

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

// slotsLimit is how many slots are read. More can't have been taken.
const slotsLimit = 10_000

// ParseSlots reads the slots of an annotation: "name~time", separated by commas, with times in RFC
// 3339. Entries that can't be read are skipped, because an unreadable slot must not block a fleet
// permanently. If a machine is named twice, the last entry counts.
func ParseSlots(text string) []Slot {
	if text == "" {
		return nil
	}
	var slots []Slot
	for entry := range strings.SplitSeq(text, ",") {
		name, at, found := strings.Cut(entry, "~")
		taken, err := time.Parse(time.RFC3339, at)
		taken = taken.UTC().Truncate(time.Second)
		writable := taken.Year() >= 1 && taken.Year() <= 9999 // a zone may make it unwritable
		if !found || err != nil || !writable || name == "" || len(slots) >= slotsLimit {
			continue
		}
		slots = append(withoutSlot(slots, name), Slot{name, taken})
	}
	return slots
}

// FormatSlots returns what ParseSlots reads. It skips a slot whose machine name no store allows: an
// empty one, or one with a comma or a tilde.
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
