// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// RunRecordFile is the path of a file in which the manager keeps the record of runs, so that it survives the process:
// see [runs.File]. Run opens it, and returns an error if another process has it open. A file that cannot be read or
// written for another reason is logged, and the manager works without it. Without a record the option does nothing.
func RunRecordFile(path string) Option { return func(m *Manager) { m.recordFile = path } }

// lastWrite is how long the file of the record may take when the manager stops.
const lastWrite = time.Second

// keepRecord opens the file of the record and writes it in the background until end is called.
func (m *Manager) keepRecord() (end func(), err error) {
	if m.runs == nil || m.recordFile == "" {
		return func() {}, nil
	}
	file, err := m.runs.Open(m.recordFile, m.log)
	if errors.Is(err, runs.ErrFileInUse) {
		return func() {}, fmt.Errorf("running the manager: %w", err)
	}
	if err != nil {
		m.log.Error("the record of runs ends with this process", "error", err)
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	written := make(chan struct{})
	go func() {
		defer close(written)
		file.Run(ctx)
	}()
	return func() {
		cancel()
		select {
		case <-written:
		case <-time.After(lastWrite):
			m.log.Warn("the newest runs are not in the file of the record: writing it takes too long", "file", m.recordFile)
		}
	}, nil
}
