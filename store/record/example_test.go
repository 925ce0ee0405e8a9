package record_test

import (
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store/record"
	"github.com/millwright-go/millwright/store/storetest"
)

// A store writes the record, and returns what Decode will return for it.
func ExampleCodec() {
	codec := record.NewCodec[*storetest.Object]()
	content, same, err := codec.Encode(&storetest.Object{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "a"}, UID: "object-1"},
		Spec: storetest.Spec{Replicas: 3},
	})
	if err != nil {
		panic(err)
	}
	read, err := codec.Decode(content)
	fmt.Println(read.SpecEqual(same), err)

	// A program that does not know a field must not write the object: the field would be lost.
	_, err = codec.Decode([]byte(`{"Name":"a","Budget":7}`))
	fmt.Println(errors.Is(err, record.ErrContent), err)
	// Output:
	// true <nil>
	// true has content that does not fit its kind
}
