package rollout

import "fmt"

// inPlace returns the sentence of a reason that only [InPlace] gives.
func (w Why) inPlace() string {
	switch w.Reason {
	case ReasonOldMissing:
		return fmt.Sprintf("%s missing: new ones come in their place", machines(w.Count, "old "))
	case ReasonLeftover:
		return fmt.Sprintf("%s: the new set has all it should have, %s may go", w.availability(), machines(w.Count, "old "))
	case ReasonSelect:
		return fmt.Sprintf("%s: %s may stop to be updated", w.availability(), machines(w.Count, ""))
	case ReasonUpdating:
		return fmt.Sprintf("waiting for %s to be updated in place, first of set %s", machines(w.Count, ""), w.Set)
	case ReasonNoSelect:
		return fmt.Sprintf("%s could be updated in place, first of set %s, but none may be selected now", machines(w.Count, ""), w.Set)
	case ReasonUnselected:
		return fmt.Sprintf("waiting for somebody to select machines to be updated: %s could be, first of set %s",
			machines(w.Count, ""), w.Set)
	}
	return fmt.Sprintf("waiting for %s of set %s: not fit to be updated in place, or not yet", machines(w.Count, "old "), w.Set)
}
