// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"context"
	"log/slog"

	"github.com/setpoint-io/setpoint/client"
)

// rightsAdvice stands beside an error about a missing right.
const rightsAdvice = `"setpoint manager rbac" prints the rights that the manager needs, for kubectl apply`

// missingRights is a handler of logs that adds to a record with an error about a missing right
// which command prints the rights. The library, which logs such errors, knows no commands.
type missingRights struct{ slog.Handler }

// Handle implements slog.Handler.
func (h missingRights) Handle(ctx context.Context, r slog.Record) error {
	lacks := false
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		lacks = ok && client.LacksRight(err)
		return !lacks
	})
	if lacks {
		r = r.Clone()
		r.AddAttrs(slog.String("rights", rightsAdvice))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h missingRights) WithAttrs(attrs []slog.Attr) slog.Handler {
	return missingRights{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h missingRights) WithGroup(name string) slog.Handler {
	return missingRights{h.Handler.WithGroup(name)}
}
