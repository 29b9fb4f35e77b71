// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/discovery"
)

// UnknownKindError says that a kind is not served. It is final for a name without a group: such a
// name is of a built-in kind, or a mistake. A name with a group may be of a kind that is defined
// later.
type UnknownKindError struct {
	Name    string
	Nearest string // a kind that is served
}

func (e *UnknownKindError) Error() string {
	text := fmt.Sprintf("the server has no kind %q that can be watched", e.Name)
	if e.Nearest != "" {
		text += fmt.Sprintf("; did you mean %q?", e.Nearest)
	} else {
		text += "."
	}
	if e.mayAppear() {
		return text
	}
	return text + " One that is defined later is waited for if its group is named too, as in widgets.example.com"
}

// mayAppear reports whether a kind that is not served may be defined later.
func (e *UnknownKindError) mayAppear() bool { return strings.Contains(e.Name, ".") }

// splitObject splits deploy/web, which names one object of a kind. The name of a whole kind has no
// object.
func splitObject(name string) (kind, object string) {
	kind, object, _ = strings.Cut(name, "/")
	return kind, object
}

// watchable reports whether the objects of a kind can be followed.
func watchable(s client.Served) bool { return s.Can("list") && s.Can("watch") }

// FindKind returns the kind of a name among those that [client.Client.Discover] returned, or an
// [UnknownKindError]. Names are as kubectl takes them: the plural, the singular, a short name or the
// kind, in any case, and behind a dot the group, or the version and the group. Where several groups
// have the name, the core group goes first and then the order of the server.
func FindKind(served []client.Served, name string) (client.Served, error) {
	kind, near, found := discovery.Named(served, name, watchable)
	if !found {
		return client.Served{}, &UnknownKindError{Name: name, Nearest: near}
	}
	return kind, nil
}

// everyKind returns the kinds that can be followed, each object in one of them.
func everyKind(served []client.Served) []client.Served {
	return slices.DeleteFunc(discovery.Once(served), func(s client.Served) bool { return !watchable(s) })
}
