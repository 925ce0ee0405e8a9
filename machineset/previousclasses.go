package machineset

import (
	"slices"

	"github.com/millwright-go/millwright/machine"
)

// hadClass reports whether a machine has a class that the template had before,
// so that it gets the one that the template has now.
func (s *Set) hadClass(have *machine.ClassRef) bool {
	want := &s.Spec.Template.Spec.Class
	return have.Name != want.Name && have.APIGroup == want.APIGroup && slices.Contains(s.Instructions.PreviousClasses, have.Name)
}
