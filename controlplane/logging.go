// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"flag"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// Kubernetes logs through klog, whose destination is process-wide and may only be set
// while no goroutine logs. It is therefore set once, to a handler that passes records on
// to whatever logger the latest Start brought.
var (
	klogOnce   sync.Once
	klogTarget atomic.Pointer[slog.Handler]
)

// logKubernetesTo sends klog's lines to logger, at the verbosity of its level, until the
// returned function is called or another logger has taken over.
func logKubernetesTo(logger *slog.Logger) (release func()) {
	h := logger.With("component", "kubernetes").Handler()
	klogTarget.Store(&h)
	klogOnce.Do(func() {
		klog.SetSlogLogger(slog.New(klogHandler{}))
		surviveFatal()
	})

	// klog's own threshold drops V(n) lines before they are formatted. V(n)
	// arrives here as slog level -n.
	v := 0
	for v < 10 && logger.Enabled(context.Background(), slog.Level(-v-1)) {
		v++
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", strconv.Itoa(v)) // an integer is always accepted
	return func() {
		silent := slog.DiscardHandler
		klogTarget.CompareAndSwap(&h, &silent)
	}
}

// klogHandler passes records on to klogTarget, under the attributes and groups
// that were added on the way.
type klogHandler struct {
	added []func(slog.Handler) slog.Handler
}

func (h klogHandler) target() slog.Handler { return *klogTarget.Load() }

func (h klogHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.target().Enabled(ctx, l)
}

func (h klogHandler) Handle(ctx context.Context, r slog.Record) error {
	t := h.target()
	for _, add := range h.added {
		t = add(t)
	}
	return t.Handle(ctx, r)
}

func (h klogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(t slog.Handler) slog.Handler { return t.WithAttrs(attrs) })
}

func (h klogHandler) WithGroup(name string) slog.Handler {
	return h.with(func(t slog.Handler) slog.Handler { return t.WithGroup(name) })
}

func (h klogHandler) with(add func(slog.Handler) slog.Handler) slog.Handler {
	return klogHandler{added: append(slices.Clip(h.added), add)}
}

// zapCore lets etcd, which logs through zap, write to a slog handler.
type zapCore struct{ handler slog.Handler }

func (c zapCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), slogLevel(l))
}

func (c zapCore) With(fields []zapcore.Field) zapcore.Core {
	return zapCore{c.handler.WithAttrs(slogAttrs(fields))}
}

func (c zapCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, slogLevel(e.Level), e.Message, e.Caller.PC)
	r.AddAttrs(slogAttrs(fields)...)
	return c.handler.Handle(context.Background(), r)
}

func (c zapCore) Sync() error { return nil }

func slogLevel(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

func slogAttrs(fields []zapcore.Field) []slog.Attr {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	attrs := make([]slog.Attr, 0, len(enc.Fields))
	for k, v := range enc.Fields {
		attrs = append(attrs, slog.Any(k, v))
	}
	slices.SortFunc(attrs, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	return attrs
}
