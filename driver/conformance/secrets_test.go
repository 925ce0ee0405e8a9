package conformance

import (
	"strings"
	"testing"

	"github.com/millwright-go/millwright/machine"
)

// search finds a value in each form in which drivers print values, and nothing in other texts.
func TestSecretsAreFoundInTheirForms(t *testing.T) {
	class := &machine.Class{ProviderSpec: []byte(`{"region":"north-1"}`)}
	value := []byte("pass\"word/1?>")
	secret := &machine.Secret{Data: map[string][]byte{"password": value, "region": []byte("north-1"), "n": []byte("no")}}
	for text, shown := range map[string]bool{
		"wrong: " + string(value):                               true,
		`quoted "pass\"word/1?>"`:                               true,
		"bytes [112 97 115 115 34 119 111 114 100 47 49 63 62]": true,
		"base64 cGFzcyJ3b3JkLzE/Pg==":                           true,
		"url cGFzcyJ3b3JkLzE_Pg":                                true,
		"hex 7061737322776f72642f313f3e":                        true,
		"north-1 is no place, password no":                      false,
		"":                                                      false,
	} {
		record := &recorder{TB: t}
		r := New(record, Options{})
		r.ForbidInAnswers(secret, class)
		r.secrets.search(r, "the text", text)
		if record.Failed() != shown || strings.Contains(record.text(), string(value)) {
			t.Errorf("%q: found %t, want %t; %s", text, record.Failed(), shown, record.text())
		}
	}
}
