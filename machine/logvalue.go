package machine

import "log/slog"

// LogValue implements slog.LogValuer: a secret that is logged shows its name. It
// does not help where a secret is a part of a value that a logger encodes as
// JSON: encoders write the data.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
