// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is a small API server in memory, for tests and examples that
// need to choose what goes wrong: a watch that lags, an answer that is lost, a
// right that is missing.
//
// A server knows one resource ([Several] put some together), speaks JSON, and does
// lists, watches with initial events and bookmarks, create, update, status updates,
// merge patches and deletes, with resourceVersions and conflicts as a real one, and tells
// what it serves. It
// validates nothing and has no admission: how a real server behaves is for tests
// against a real server.
package fakeapi
