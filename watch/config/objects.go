// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"
	"strings"

	names "k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/setpoint-io/setpoint/watch/event"
)

// splitObject splits deployments.apps/web. Without a slash, all objects of the kind are meant.
func splitObject(name string) (kind, object string, named bool) {
	return strings.Cut(name, "/")
}

// subresources are names behind a slash that are rarely those of objects.
// Source: k8s.io/kubernetes/pkg/controlplane and pkg/registry, which install them.
var subresources = []string{
	"approval", "attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize", "log", "portforward", "proxy", "resize",
	"scale", "status", "token",
}

// objectPattern is the name of an object in which * stands for any characters. None of its
// characters but * means something to path.Match.
var objectPattern = regexp.MustCompile(`^[-.:_A-Za-z0-9*]{1,253}$`)

// watchedKind checks an element of watch.kinds: a kind, or one object of it.
func (r *rules) watchedKind(path, name string, all []string) {
	kind, object, named := splitObject(name)
	if !named {
		r.kind(path, name)
		return
	}
	r.kindOf(path, kind, object)
	switch problems := names.IsPathSegmentName(object); {
	case strings.Contains(object, "*"):
		r.wrong(path, "%q: an object is watched by its whole name; name the kind, and use * in the match of a route", clip(name))
	case len(problems) > 0:
		r.wrong(path, "%q: %q cannot be the name of an object: it %s", clip(name), clip(object), strings.Join(problems, ", "))
	case slices.Contains(all, kind):
		r.wrong(path, "%q: all objects of %s are watched as well; leave out one of the two", clip(name), clip(kind))
	}
}

// matchedKind checks an element of kinds in the match of a route: a kind or a pattern for kinds, or
// objects of it by name or pattern.
func (r *rules) matchedKind(path, name string) {
	kind, object, named := splitObject(name)
	switch {
	case strings.Contains(kind, "*"):
		r.pattern(path, kind, kindPattern, "a kind")
	case named:
		r.kindOf(path, kind, object)
	default:
		r.kind(path, kind)
	}
	if named && object != "" {
		r.pattern(path, object, objectPattern, "the name of an object")
	}
}

// kindOf checks the kind before the name of an object.
func (r *rules) kindOf(path, kind, object string) {
	switch {
	case object == "":
		r.wrong(path, "%q: the name of an object is missing behind the slash; leave the slash out for all objects", clip(kind+"/"))
	case slices.Contains(subresources, object):
		r.warn(path, "%q is the object of this name; subresources cannot be watched, and the kind is %s", clip(kind+"/"+object), clip(kind))
	}
	r.kind(path, kind)
}

// overlap reports whether an element of kinds in a match can match events of an element of
// watch.kinds.
func overlap(match, watched string) bool {
	kind, object, named := splitObject(match)
	watchedKind, watchedObject, oneObject := splitObject(watched)
	if !newPatterns([]string{kind}).match(watchedKind) {
		return false
	}
	return !named || !oneObject || newPatterns([]string{object}).match(watchedObject)
}

// kindMatch is the list of kinds in the match of a route, ready for events.
type kindMatch struct {
	kinds   map[groupPlural]bool // whole kinds, by name
	like    patterns             // whole kinds, by patterns
	objects patterns             // objects, as pods/web-1
}

// groupPlural is the name of a kind in two parts, which needs no new text for each event.
type groupPlural struct{ group, plural string }

// newKindMatch returns nil for an empty list, which matches every kind.
func newKindMatch(all []string) *kindMatch {
	if len(all) == 0 {
		return nil
	}
	m := &kindMatch{kinds: map[groupPlural]bool{}}
	var globs, objects []string
	for _, name := range all {
		switch kind, _, named := splitObject(name); {
		case named:
			objects = append(objects, name)
		case strings.Contains(kind, "*"):
			globs = append(globs, kind)
		default:
			plural, group := splitKind(kind)
			m.kinds[groupPlural{group, plural}] = true
		}
	}
	m.like, m.objects = newPatterns(globs), newPatterns(objects)
	return m
}

func (m *kindMatch) match(e *event.Event) bool {
	return m.kinds[groupPlural{e.Kind.Group, e.Kind.Resource}] ||
		!m.like.empty() && m.like.match(e.Kind.String()) ||
		!m.objects.empty() && m.objects.match(e.Kind.String()+"/"+e.Key.Name)
}
