//! A real HTTP/1.1 server on loopback, one thread per connection, each answer scripted by the test.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The first byte of a `Range: bytes=N-`.
    pub fn range_start(&self) -> Option<usize> {
        self.header("range")?
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    }
}

/// What to answer, and how badly.
#[derive(Clone, Default)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Announced length, if different from the body's; `Some(None)`: no length at all.
    pub announced: Option<Option<usize>>,
    /// Wait after each byte.
    pub byte_delay: Option<Duration>,
    /// Wait before answering.
    pub delay: Option<Duration>,
}

impl Response {
    pub fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub fn ok(body: &[u8]) -> Self {
        Self {
            status: 200,
            body: body.to_vec(),
            ..Self::default()
        }
    }

    /// The whole body or the rest of it, as requested.
    pub fn ranged(request: &Request, body: &[u8]) -> Self {
        match request.range_start().filter(|start| *start < body.len()) {
            None => Self::ok(body),
            Some(start) => {
                let range = format!("bytes {start}-{}/{}", body.len() - 1, body.len());
                let rest = Self {
                    status: 206,
                    body: body[start..].to_vec(),
                    ..Self::default()
                };
                rest.header("Content-Range", &range)
            }
        }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Announces the whole body, and closes the connection after `bytes` of it.
    pub fn dropped_after(mut self, bytes: usize) -> Self {
        self.announced = Some(Some(self.body.len()));
        self.body.truncate(bytes);
        self
    }
}

pub struct Server {
    address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// `answer` gets the request and how many came before it.
    pub fn start(answer: impl Fn(&Request, usize) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("its address").to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                // Many tests have a client that hangs up early.
                thread::spawn(move || drop(serve(stream, &seen, &*answer)));
            }
        });
        Self { address, requests }
    }

    /// Stores what is PUT and serves it. Honours `If-None-Match: *`.
    pub fn store() -> Self {
        let files: Mutex<HashMap<String, Vec<u8>>> = Mutex::default();
        Self::start(move |request, _| {
            let mut files = files.lock().expect("not poisoned");
            match (&request.method[..], files.get(&request.path)) {
                ("GET", Some(body)) => Response::ranged(request, body),
                ("GET", None) => Response::status(404),
                ("PUT", Some(_)) if request.header("if-none-match") == Some("*") => {
                    Response::status(412)
                }
                ("PUT", _) => {
                    files.insert(request.path.clone(), request.body.clone());
                    Response::status(201)
                }
                _ => Response::status(405),
            }
        })
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("not poisoned").clone()
    }
}

fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request, usize) -> Response,
) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = read_head(&mut reader)?;
    let length = request
        .header("content-length")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    request.body = vec![0; length];
    reader.read_exact(&mut request.body)?;
    let before = {
        let mut seen = seen.lock().expect("not poisoned");
        seen.push(request.clone());
        seen.len() - 1
    };
    write_response(stream, &answer(&request, before))
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Request> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut request = Request {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        ..Request::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => {
                request
                    .headers
                    .insert(name.to_ascii_lowercase(), value.to_owned());
            }
            None => return Ok(request),
        }
    }
}

fn write_response(mut stream: TcpStream, response: &Response) -> io::Result<()> {
    thread::sleep(response.delay.unwrap_or_default());
    let mut head = format!("HTTP/1.1 {} Test\r\nConnection: close\r\n", response.status);
    if let Some(length) = response.announced.unwrap_or(Some(response.body.len())) {
        head += &format!("Content-Length: {length}\r\n");
    }
    for (name, value) in &response.headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    let Some(delay) = response.byte_delay else {
        return stream.write_all(&response.body);
    };
    for byte in &response.body {
        stream.write_all(&[*byte])?;
        thread::sleep(delay);
    }
    Ok(())
}
