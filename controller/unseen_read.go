// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// read gets the object's metadata from the server. An object counts as absent if the
// answer names this object, and not after any other 404: a proxy without a server behind
// it answers with one too, and so does a server that does not serve the kind. Credentials
// that may write need not have the right to get, so without it the object is listed.
func (w *unseenWrite) read(ctx context.Context) (m object.Meta, exists bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askAfter)
	defer cancel()
	o, err := client.ForResource[*metav1.PartialObjectMetadata](w.Client, w.Resource).Get(ctx, w.Key)
	switch {
	case client.AbsentAt(err, w.Key):
		return m, false, nil
	case apierrors.IsForbidden(err):
		return w.readByList(ctx)
	case err != nil:
		return m, false, err
	case object.KeyOf(o) != w.Key:
		return m, false, fmt.Errorf("get %s %s: the answer is %s", w.Resource, w.Key, object.KeyOf(o))
	}
	m, err = metaOf(o)
	return m, err == nil, err
}

// readByList finds the object in a list of those with its name.
func (w *unseenWrite) readByList(ctx context.Context) (m object.Meta, exists bool, err error) {
	named := client.Selection{Namespace: w.Key.Namespace, Fields: fields.OneTermEqualSelector("metadata.name", w.Key.Name).String()}
	_, err = w.list(ctx, named, 0, func(live object.Meta) {
		if live.Key == w.Key {
			m, exists = live, true
		}
	})
	return m, exists && err == nil, err
}

// list hands out the metadata of the objects of the write's kind, and returns the version
// of the whole. Where the credentials lack the right, those of the informer have it: it
// lists the same kind.
func (w *unseenWrite) list(ctx context.Context, s client.Selection, page int64, each func(object.Meta)) (object.Version, error) {
	version, err := list(ctx, w.Client, w.Resource, s, page, each)
	if informers := w.informer.Client(); apierrors.IsForbidden(err) && informers != nil && informers != w.Client {
		return list(ctx, informers, w.Resource, s, page, each)
	}
	return version, err
}

func list(ctx context.Context, from *client.Client, r object.Resource, s client.Selection, page int64, each func(object.Meta)) (object.Version, error) {
	s.MetadataOnly = true
	head, err := from.List(ctx, r, s, client.ListOptions{PageSize: page}, func(e wire.Encoding, raw []byte) error {
		var o metav1.PartialObjectMetadata
		if err := e.Decode(raw, &o); err != nil {
			return err
		}
		m, err := metaOf(&o)
		if err == nil {
			each(m)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	version, err := versionOf(head.ResourceVersion)
	if err != nil {
		return "", fmt.Errorf("list %s: %w", r, err)
	}
	return version, nil
}

// metaOf is object.MetaOf of an object whose version must be known.
func metaOf(o *metav1.PartialObjectMetadata) (object.Meta, error) {
	if _, err := versionOf(o.ResourceVersion); err != nil {
		return object.Meta{}, fmt.Errorf("%s: %w", object.KeyOf(o), err)
	}
	return object.MetaOf(o), nil
}

// versionOf reads the version in an answer. Each object and each list of an API server has
// one. An answer without one is of something else, such as a proxy that answers 200 with {},
// and says nothing of what the server has.
func versionOf(s string) (object.Version, error) {
	version, err := object.ParseVersion(s)
	if err == nil && version.IsZero() {
		err = fmt.Errorf("resourceVersion %q: the answer is not that of an API server", s)
	}
	return version, err
}
