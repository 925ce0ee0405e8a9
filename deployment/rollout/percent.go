package rollout

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// IntOrPercent is a number of machines, or a percentage of the machines wanted. In JSON it is a number
// such as 3, or a string such as "20%"; as text it is the same without quotes. The zero value is 0
// machines.
type IntOrPercent struct {
	// Value is a number of machines or, with Percent, a percentage. Range: 0 to math.MaxInt32. A negative
	// value, which [Parse] never returns, counts as 0.
	Value int32
	// Percent says that Value is a percentage. More than 100 is allowed, see
	// [IntOrPercent.Over100].
	Percent bool
}

// Unreadable is the value that a store sets for a text that [Parse] refuses, other than a negative number.
// A deployment with it is invalid, and its status says that the value is neither a number nor a percentage.
var Unreadable = IntOrPercent{Value: math.MinInt32}

// Messages about a text that is no [IntOrPercent].
const (
	empty         = "is empty; write a number of machines, or a percentage such as 20%"
	malformed     = "is neither a whole number of machines nor a percentage such as 20%"
	negative      = "is negative"
	tooLarge      = "is larger than 2147483647"
	wrongJSONType = "is neither a JSON number nor a JSON string"
)

// refuse returns the error for a text. It quotes at most 40 bytes of it.
func refuse(text, wrong string) error { return fmt.Errorf("rollout: %.40q %s", text, wrong) }

// Parse reads "3" or "20%": decimal digits, leading zeros allowed, no sign, no space, no fraction.
// It refuses everything else, including negative numbers and numbers above math.MaxInt32. It accepts
// more than 100%.
func Parse(s string) (IntOrPercent, error) {
	if s == "" {
		return IntOrPercent{}, refuse(s, empty)
	}
	digits, percent := strings.CutSuffix(s, "%")
	value, wrong := parseDigits(digits)
	if wrong != "" {
		return IntOrPercent{}, refuse(s, wrong)
	}
	return IntOrPercent{Value: value, Percent: percent}, nil
}

func parseDigits(s string) (value int32, wrong string) {
	digits, minus := strings.CutPrefix(s, "-")
	if digits == "" {
		return 0, malformed
	}
	number := int64(0)
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, malformed
		}
		// Capped, so that a long input does not wrap around into the range.
		number = min(number*10+int64(digits[i]-'0'), math.MaxInt32+1)
	}
	switch {
	case minus:
		return 0, negative
	case number > math.MaxInt32:
		return 0, tooLarge
	}
	return int32(number), ""
}

// Problem returns what is wrong with the value, for an error that names its field. Empty: nothing.
func (v IntOrPercent) Problem() string {
	switch {
	case v == Unreadable:
		return "must be a whole number, such as 3, or a whole percentage, such as 20%"
	case v.Value < 0:
		return "must not be negative"
	}
	return ""
}

// Over100 reports whether the percentage is above 100. That is valid (150% of 10 is 15), but probably a
// mistake, so the caller may warn.
func (v IntOrPercent) Over100() bool {
	return v.Percent && v.Value > 100
}

// Ceil returns the number of machines that v means for a total of machines, rounded up: 20% of 6 is 2. A number
// of machines is returned as it is, for any total. The result is 0 to math.MaxInt32: more
// becomes math.MaxInt32, and a negative total counts as 0.
func (v IntOrPercent) Ceil(total int32) int32 {
	return v.resolve(total, 99)
}

// Floor is [IntOrPercent.Ceil], but rounded down: 20% of 6 is 1.
func (v IntOrPercent) Floor(total int32) int32 {
	return v.resolve(total, 0)
}

// resolve adds hundredths of a machine, and rounds down. The product stays below 2^62.
func (v IntOrPercent) resolve(total int32, hundredths int64) int32 {
	value := max(int64(v.Value), 0)
	if v.Percent {
		value = (value*max(int64(total), 0) + hundredths) / 100
	}
	return int32(min(value, math.MaxInt32))
}

// String returns "3" or "20%".
func (v IntOrPercent) String() string {
	s := strconv.Itoa(int(v.Value))
	if v.Percent {
		s += "%"
	}
	return s
}

// MarshalText returns what String returns. It refuses a negative Value, which UnmarshalText could not read.
func (v IntOrPercent) MarshalText() ([]byte, error) {
	if v.Value < 0 {
		return nil, refuse(v.String(), negative)
	}
	return []byte(v.String()), nil
}

// UnmarshalText reads what [Parse] reads. If it refuses the text, it leaves v unchanged.
func (v *IntOrPercent) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*v = parsed
	return nil
}

// MarshalJSON writes a number of machines as a JSON number and a percentage as a string, and
// refuses what [IntOrPercent.MarshalText] refuses.
func (v IntOrPercent) MarshalJSON() ([]byte, error) {
	text, err := v.MarshalText()
	if err != nil || !v.Percent {
		return text, err
	}
	return strconv.AppendQuote(nil, string(text)), nil
}

// UnmarshalJSON reads a JSON number, or a string that [Parse] reads. It refuses numbers with a fraction or an
// exponent. null changes nothing, as usual in Go. If it refuses the input, it leaves v unchanged.
func (v *IntOrPercent) UnmarshalJSON(input []byte) error {
	if len(input) == 0 {
		return refuse("", empty)
	}
	switch first := input[0]; {
	case string(input) == "null":
		return nil
	case first == '"':
		var s string
		if err := json.Unmarshal(input, &s); err != nil {
			return fmt.Errorf("rollout: %w", err)
		}
		return v.UnmarshalText([]byte(s))
	case first != '-' && (first < '0' || first > '9'):
		return refuse(string(input), wrongJSONType)
	case input[len(input)-1] == '%':
		return refuse(string(input), malformed)
	}
	return v.UnmarshalText(input)
}
