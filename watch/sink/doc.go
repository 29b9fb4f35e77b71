// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sink takes events to where people and programs read them: a terminal, a file, a
// webhook, Kubernetes Events, chat and mail.
package sink
