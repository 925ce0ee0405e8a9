package app

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// newLog returns the log of the program. Errors are written to errs, all else to out.
func (s *settings) newLog(out, errs io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel)) // the parser has checked it
	o := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "text" {
		return slog.New(split{rest: slog.NewTextHandler(out, o), errors: slog.NewTextHandler(errs, o)})
	}
	return slog.New(split{rest: slog.NewJSONHandler(out, o), errors: slog.NewJSONHandler(errs, o)})
}

// setLibraryLog makes the Kubernetes libraries of this process write to log. Even at debug level they
// don't log the bodies of requests.
func setLibraryLog(log *slog.Logger) {
	handler := shutdownHandler{log.Handler()}
	klog.SetSlogLogger(slog.New(handler))
	ctrl.SetLogger(logr.FromSlogHandler(handler))
}

// split is a log handler with a separate handler for errors.
type split struct{ rest, errors slog.Handler }

// Enabled implements slog.Handler.
func (s split) Enabled(ctx context.Context, level slog.Level) bool { return s.rest.Enabled(ctx, level) }

// Handle implements slog.Handler.
func (s split) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		return s.errors.Handle(ctx, r)
	}
	return s.rest.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (s split) WithAttrs(attrs []slog.Attr) slog.Handler {
	return split{rest: s.rest.WithAttrs(attrs), errors: s.errors.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (s split) WithGroup(name string) slog.Handler {
	return split{rest: s.rest.WithGroup(name), errors: s.errors.WithGroup(name)}
}

// shutdownHandler logs two errors at debug level, because libraries log them in an orderly shutdown,
// too: that the lease was lost (it was released), and that requests were canceled.
type shutdownHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h shutdownHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelError && isShutdownError(r) {
		if !h.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		r.Level = slog.LevelDebug
	}
	return h.Handler.Handle(ctx, r)
}

// isShutdownError reports whether a record is one of the errors of an orderly shutdown.
func isShutdownError(r slog.Record) (yes bool) {
	r.Attrs(func(a slog.Attr) bool {
		if err, is := a.Value.Any().(error); is {
			lost := r.Message == "error received after stop sequence was engaged" && err.Error() == "leader election lost"
			yes = yes || lost || errors.Is(err, context.Canceled)
		}
		return true
	})
	return yes
}

// WithAttrs implements slog.Handler.
func (h shutdownHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return shutdownHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h shutdownHandler) WithGroup(name string) slog.Handler {
	return shutdownHandler{h.Handler.WithGroup(name)}
}
