package convert

import (
	"encoding/json"
	"reflect"

	"github.com/millwright-go/millwright/machine"
)

// Canonical returns a value as JSON without zero fields, times in whole seconds.
func Canonical(pointer any) string {
	value, _ := compact(reflect.ValueOf(pointer))
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// FormatStage and ParseStage write and read descriptions of operations.
var (
	FormatStage = formatStage
	ParseStage  = parseStage
)

// DeletionMarkers returns the texts that other managers look for, and their stages, in order.
func DeletionMarkers() (stages []machine.Stage, texts []string) {
	for _, m := range deletionMarkers {
		stages, texts = append(stages, m.stage), append(texts, m.text)
	}
	return stages, texts
}

// Encode and Decode write and read annotations.
var (
	Encode = encode
	Decode = decode
)

// Difference makes patches.
var Difference = difference
