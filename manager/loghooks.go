package manager

import (
	"context"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// LogHooks returns hooks that log what Options.Log does not: each step of a state machine, as in
// "Pending -> Running (joined)", at Info; calls to driver and cluster, at Debug or, if they failed, at
// Warn; freezes and slowed classes. Set other fields of the result for hooks of your own.
func LogHooks(log *slog.Logger) Hooks {
	write := func(level slog.Level, msg string, attrs ...slog.Attr) {
		log.LogAttrs(context.Background(), level, msg, attrs...)
	}
	return Hooks{
		Transition: func(key object.Key, move machine.Move, why decision.Why) {
			write(slog.LevelInfo, move.String(), append([]slog.Attr{
				slog.String("table", move.Table), slog.String("object", key.String()), slog.String("why", why.String()),
			}, engine.Figures(why)...)...)
		},
		Effect: func(kind Kind, key object.Key, name string, took time.Duration, err error) {
			attrs := []slog.Attr{slog.String("kind", string(kind)), slog.String("object", key.String()), slog.Duration("took", took)}
			if err != nil {
				write(slog.LevelWarn, name, append(attrs, slog.String("error", err.Error()))...)
				return
			}
			write(slog.LevelDebug, name, attrs...)
		},
		Frozen: func(server string, frozen bool) {
			if frozen {
				write(slog.LevelWarn, "everything is frozen: an API server does not answer", slog.String("server", server))
				return
			}
			write(slog.LevelInfo, "the API server answers", slog.String("server", server))
		},
		Slowed: func(class object.Key, wait time.Duration) {
			if wait > 0 {
				write(slog.LevelWarn, "the provider refuses machines of a class", slog.String("class", class.String()), slog.Duration("next", wait))
			}
		},
	}
}
