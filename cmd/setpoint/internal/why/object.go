// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/internal/nearest"
	"github.com/setpoint-io/setpoint/object"
)

// named returns the kind and the name of the arguments: KIND/NAME or KIND NAME.
func named(args []string) (kind, name string, err error) {
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", errors.New("want one object, such as deploy/web or pod web-1")
	}
	return kind, name, nil
}

// found is the object of the arguments.
type found struct {
	resource object.Resource
	key      object.Key
}

// find returns the object that the arguments name. Whether it exists is not known yet.
func (x *command) find(ctx context.Context, c *client.Client, kind, name string) (found, error) {
	served, err := discovery.Ask(ctx, c.Discover)
	if partly := (*client.DiscoveryError)(nil); err != nil && !errors.As(err, &partly) {
		return found{}, fmt.Errorf("asking the server for its kinds: %w", err)
	}
	s, near, ok := discovery.Named(served, kind, func(s client.Served) bool { return s.Can("get") })
	switch {
	case !ok && near != "":
		return found{}, fmt.Errorf("the server has no kind %q; did you mean %q?", kind, near)
	case !ok:
		return found{}, fmt.Errorf("the server has no kind %q", kind)
	}
	f := found{resource: s.Resource, key: object.Key{Name: name}}
	if s.Namespaced {
		if f.key.Namespace = x.namespace; f.key.Namespace == "" {
			if f.key.Namespace, err = x.target.Namespace(); err != nil {
				return found{}, err
			}
		}
	}
	return f, nil
}

// mostNames is how many objects are listed to find a similar name.
const mostNames = 500

// missing is the error for an object that does not exist and of which no record knows.
func (f found) missing(ctx context.Context, g gather.Gatherer, unknown []string) error {
	text := fmt.Sprintf("%s %s does not exist", f.resource.Kind, f.key)
	if len(unknown) == 0 {
		text += ", and the record of the manager does not have it"
	}
	if names, err := g.Names(ctx, f.resource, f.key.Namespace, mostNames); err == nil {
		if near := nearest.Name(f.key.Name, names); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
	}
	if len(unknown) > 0 {
		text += "; not known: " + strings.Join(unknown, "; ")
	}
	return errors.New(text)
}
