package rollout

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// IntOrPercent is a number of machines, or a percentage of the machines wanted. It is written 3 or
// "20%": in JSON a number or a string, as text the same without quotes. The zero value is 0
// machines.
type IntOrPercent struct {
	// Value is a number of machines or, with Percent, a number of hundredths. Range: 0 to
	// math.MaxInt32. Below 0, which [Parse] never returns, counts as 0.
	Value int32
	// Percent says that Value is a percentage. More than 100 is allowed, see
	// [IntOrPercent.Over100].
	Percent bool
}

// ParseReason says what is wrong with a text that should be an [IntOrPercent].
type ParseReason string

// These are the reasons why a text is refused.
const (
	ParseEmpty     ParseReason = "Empty"         // nothing at all
	ParseMalformed ParseReason = "Malformed"     // neither digits, nor digits and a percent sign
	ParseNegative  ParseReason = "Negative"      // a minus sign before the digits
	ParseTooLarge  ParseReason = "TooLarge"      // above math.MaxInt32
	ParseJSONType  ParseReason = "WrongJSONType" // JSON that is neither number nor string
)

var parseSentences = map[ParseReason]string{
	ParseEmpty:     "is empty; write a number of machines, or a percentage such as 20%",
	ParseMalformed: "is neither a whole number of machines nor a percentage such as 20%",
	ParseNegative:  "is negative",
	ParseTooLarge:  "is larger than 2147483647",
	ParseJSONType:  "is neither a JSON number nor a JSON string",
}

// ParseError is the error for a text that is no [IntOrPercent].
type ParseError struct {
	// Input is the text, unchanged. For JSON, it is the content of a string, and anything else as
	// it was written.
	Input string
	// Reason is what is wrong with it.
	Reason ParseReason
}

// Error quotes the input, at most 40 bytes of it, and says what is wrong.
func (e *ParseError) Error() string {
	if e == nil {
		return "rollout: no error"
	}
	sentence, ok := parseSentences[e.Reason]
	if !ok {
		sentence = "is refused: " + string(e.Reason)
	}
	return fmt.Sprintf("rollout: %.40q %s", e.Input, sentence)
}

// Parse reads "3" or "20%": decimal digits, leading zeros allowed, no sign, no space, no fraction.
// It refuses everything else, including negative numbers and numbers above math.MaxInt32, with a
// [*ParseError]. It accepts more than 100%.
func Parse(s string) (IntOrPercent, error) {
	if s == "" {
		return IntOrPercent{}, &ParseError{Input: s, Reason: ParseEmpty}
	}
	digits, percent := strings.CutSuffix(s, "%")
	value, reason := parseDigits(digits)
	if reason != "" {
		return IntOrPercent{}, &ParseError{Input: s, Reason: reason}
	}
	return IntOrPercent{Value: value, Percent: percent}, nil
}

func parseDigits(s string) (int32, ParseReason) {
	digits, negative := strings.CutPrefix(s, "-")
	if digits == "" {
		return 0, ParseMalformed
	}
	value := int64(0)
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, ParseMalformed
		}
		// Capped, so that a long input does not wrap around into the range.
		value = min(value*10+int64(digits[i]-'0'), math.MaxInt32+1)
	}
	switch {
	case negative:
		return 0, ParseNegative
	case value > math.MaxInt32:
		return 0, ParseTooLarge
	}
	return int32(value), ""
}

// Over100 reports whether the percentage is above 100. That is legal and resolved as it stands
// (150% of 10 is 15), but hardly intended. The caller may warn.
func (v IntOrPercent) Over100() bool {
	return v.Percent && v.Value > 100
}

// Ceil returns the number of machines meant, out of so many, with a fraction rounded up: 20% of 6
// are 2. A plain number is returned as it is, for any of. The result is 0 to math.MaxInt32: more
// becomes math.MaxInt32, and a negative of counts as 0.
func (v IntOrPercent) Ceil(of int32) int32 {
	return v.resolve(of, 99)
}

// Floor is [IntOrPercent.Ceil] with a fraction rounded down: 20% of 6 is 1.
func (v IntOrPercent) Floor(of int32) int32 {
	return v.resolve(of, 0)
}

// resolve adds so many hundredths of a machine before it cuts the fraction off. The product stays
// below 2^62.
func (v IntOrPercent) resolve(of int32, hundredths int64) int32 {
	value := max(int64(v.Value), 0)
	if v.Percent {
		value = (value*max(int64(of), 0) + hundredths) / 100
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

// MarshalText is String. It refuses a negative Value with a [*ParseError], because it could not be
// read again.
func (v IntOrPercent) MarshalText() ([]byte, error) {
	if v.Value < 0 {
		return nil, &ParseError{Input: v.String(), Reason: ParseNegative}
	}
	return []byte(v.String()), nil
}

// UnmarshalText is [Parse]. It leaves v unchanged if it refuses the text.
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

// UnmarshalJSON reads a JSON number, or a string as [Parse] does. It refuses numbers written with a
// fraction or an exponent. null changes nothing, as usual in Go. It leaves v unchanged if it
// refuses the input.
func (v *IntOrPercent) UnmarshalJSON(input []byte) error {
	if len(input) == 0 {
		return &ParseError{Reason: ParseEmpty}
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
		return &ParseError{Input: string(input), Reason: ParseJSONType}
	case input[len(input)-1] == '%':
		return &ParseError{Input: string(input), Reason: ParseMalformed}
	}
	return v.UnmarshalText(input)
}
