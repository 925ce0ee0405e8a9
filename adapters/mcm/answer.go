package mcm

import (
	"errors"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// vmAnswer has the fields that a provider's answers about a machine may have.
type vmAnswer struct {
	ProviderID, NodeName, LastKnownState string
	Addresses                            []corev1.NodeAddress
}

// vmAnswerOf copies the fields of an answer. It returns nil for nil.
func vmAnswerOf[R any](r *R) *vmAnswer {
	if r == nil {
		return nil
	}
	out := &vmAnswer{}
	from, to := reflect.ValueOf(r).Elem(), reflect.ValueOf(out).Elem()
	for i := range to.NumField() {
		if field := from.FieldByName(to.Type().Field(i).Name); field.IsValid() {
			to.Field(i).Set(field)
		}
	}
	return out
}

func (v *vmAnswer) addresses() []machine.Address {
	var out []machine.Address
	for _, a := range v.Addresses {
		out = append(out, machine.Address{Type: string(a.Type), Value: a.Address})
	}
	return out
}

// withCode returns err with the code that machine-controller-manager would find in it.
func withCode(err error) error {
	if err == nil || codes.Of(err) != codes.Unknown {
		return err
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if code, ok := numericCode(e); ok {
			return codes.Wrap(code, err, "")
		}
	}
	if code, ok := codeInText(codes.Message(err)); ok {
		return codes.Wrap(code, err, "")
	}
	return err
}

// numericCode returns the code of an error whose method Code returns a number.
func numericCode(err error) (code codes.Code, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	method := reflect.ValueOf(err).MethodByName("Code")
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return codes.Unknown, false
	}
	switch result := method.Call(nil)[0]; {
	case result.CanUint() && result.Uint() <= uint64(codes.Uninitialized):
		return codes.Code(result.Uint()), true
	case result.CanInt() && result.Int() >= 0 && result.Int() <= int64(codes.Uninitialized):
		return codes.Code(result.Int()), true
	}
	return codes.Unknown, false
}

// codeInText returns the code in the text of an error that has lost its type, such as:
//
//	machine codes error: code = [NotFound] message = [there is no such VM]
func codeInText(text string) (codes.Code, bool) {
	_, rest, _ := strings.Cut(text, "machine codes error: code = [")
	name, _, closed := strings.Cut(rest, "] message = [")
	if !closed {
		return codes.Unknown, false
	}
	return codes.Parse(name)
}
